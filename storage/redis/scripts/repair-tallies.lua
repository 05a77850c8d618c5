-- Counts the completed deliveries of an account's webhooks, a page of its log at a time. Once all
-- are counted it corrects the tallies that differ.
--
-- ARGV: account, the order to continue after or empty, the counts of the pages before or empty.
--
-- Replies: where to continue or empty, the counts so far, and how many tallies were corrected.

goOnWhenFull()
local account, after, counted = ARGV[5], ARGV[6], ARGV[7]
local MOST_EXAMINED = 500
local isReadable, roster = pcall(readRoster, account)
if not isReadable or not roster then return { '', '', 0 } end

-- By webhook: a digest of its tally when the count began, and the counts. A tally that changed
-- meanwhile is not corrected, because the count may have missed the change.
local counts = {}
local function digestOf(w) return redis.sha1hex(call('HGET', TALLIES, w) or '') end
if after == '' then
  for w in string.gmatch(roster.lines, '(%d+) [^\n]*\n') do counts[w] = { digest = digestOf(w), d = 0, f = 0, w = 0, t = 0 } end
end
for w, digest, d, f, withheld, tests in string.gmatch(counted, '(%d+),(%x+),(%d+),(%d+),(%d+),(%d+);') do
  counts[w] = { digest = digest, d = tonumber(d), f = tonumber(f), w = tonumber(withheld), t = tonumber(tests) }
end

local from, to = below(roster.a)
if after ~= '' then from = '[' .. roster.a .. '/' .. after .. '0' end
local entries = call('ZRANGEBYLEX', LOG, from, to, 'LIMIT', 0, MOST_EXAMINED)
local refs, last = {}, ''
for _, entry in ipairs(entries) do
  local order, ek, receivers = string.match(entry, '^%d+/(%x+)/([^/]+)/[^/]*/(.*)$')
  for ref in pairs(ek and deliveriesIn(ek, receivers) or {}) do refs[#refs + 1] = ref end
  last = order or last
end
for ref, value in pairs(getFields(DELIVERIES, refs)) do
  local own, state = counts[webhookOf(ref)], value and string.match(value, '^([dfw])[,:]')
  if own and state then own[state] = own[state] + 1 end
  if own and state == 'f' and readDelivery(value).reason == TEST_FAILED then own.t = own.t + 1 end
end

if #entries == MOST_EXAMINED and last ~= '' then
  local parts = {}
  for w, own in pairs(counts) do
    parts[#parts + 1] = table.concat({ w, own.digest, text(own.d), text(own.f), text(own.w), text(own.t) }, ',') .. ';'
  end
  return { last, table.concat(parts), 0 }
end
local repaired = 0
for w, right in pairs(counts) do
  local own = getTally(w)
  local isRight = own.d == right.d and own.f == right.f and own.w == right.w and own.t == right.t
  if not isRight and endpoints.get(w) and digestOf(w) == right.digest then
    own.d, own.f, own.w, own.t = right.d, right.f, right.w, right.t
    tallies.set(w, own)
    repaired = repaired + 1
  end
end
flush()
return { '', '', repaired }
