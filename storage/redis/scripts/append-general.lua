-- Stores events that append.lua leaves to it, each with all its deliveries or not at all. The first write is one that a full Redis refuses, so nothing is half stored.
-- ARGV: most pending, most pending of an account; then for each event: account, event, type, digest, payload, remember for, nonce, the short id of the only webhook it is for or empty.
-- Answers for each: `stored` or `duplicate` with the short ids of its webhooks, `conflict`, or `full` with the bound. Last: the hint.

local mostPending, mostPendingPerAccount = tonumber(ARGV[5]), tonumber(ARGV[6])

local function again(known, digest, nonce)
  if known.digest ~= digest then return { 'conflict', '' } end
  -- The same call once more, since its answer was lost: it did store the event.
  return { known.nonce == nonce and 'stored' or 'duplicate', known.receivers }
end

local FIRST, FIELDS = 7, 8
local rosters = {}

local function rosterFor(account)
  if rosters[account] == nil then rosters[account] = rosterOf(account) or false end
  return rosters[account] or nil
end

-- What is known of the ids already, read at once.
local eventKeys, rememberedKeys = {}, {}
for i = FIRST, #ARGV, FIELDS do
  local account, ek = ARGV[i], ARGV[i + 1]
  local roster = rosterFor(account)
  eventKeys[#eventKeys + 1] = (roster and roster.a or '') .. '/' .. ek
  rememberedKeys[#rememberedKeys + 1] = 'e/' .. ek .. '/' .. account
end
local numbers = {}
for _, roster in pairs(rosters) do
  if roster then numbers[#numbers + 1] = roster.a end
end
books.fetch(numbers)
local knownEvents = call('HMGET', EVENTS, unpack(eventKeys))
local knownIds = call('HMGET', REMEMBERED, unpack(rememberedKeys))
-- Of this script, by account and id.
local stored = {}
local values = {}

local function append(place, account, ek, type, digest, payload, rememberFor, nonce, target)
  local roster, key = rosterFor(account), eventKeys[place]
  local kept = stored[rememberedKeys[place]] or knownEvents[place] and readEvent(knownEvents[place])
  if kept then return again(kept, digest, nonce) end
  local remembered = knownIds[place]
  if remembered then
    local expiresAt, by, receivers, of = string.match(remembered, '^(%d+)\n([^\n]*)\n([^\n]*)\n(.*)$')
    if tonumber(expiresAt) > now then return again({ nonce = by, receivers = receivers, digest = of }, digest, nonce) end
  end

  local ws, shorts = {}, {}
  local hasWebhooks, isTest = false, target ~= ''
  if roster then
    local wished = wishes(type)
    for w, status, short, types in string.gmatch(roster.lines, '(%d+) (%a) (%S+) ([^\n]*)\n') do
      hasWebhooks = true
      local isWanted = short == target
      if not isTest then isWanted = wants(types, wished) end
      if status == 'E' and isWanted then
        ws[#ws + 1] = w
        shorts[#shorts + 1] = short
      end
    end
  end
  local receivers = table.concat(shorts, ';')
  local rememberUntil = now + tonumber(rememberFor)
  if #ws == 0 and (isTest or not hasWebhooks or keepMs == 0) then
    remember(rememberedKeys[place], table.concat({ text(rememberUntil), nonce, '', digest }, '\n'), rememberUntil)
    stored[rememberedKeys[place]] = { nonce = nonce, receivers = '', digest = digest }
    return { 'stored', '' }
  end

  local a = roster.a
  local bound = passedBound(a, #ws, mostPending, mostPendingPerAccount)
  if bound then return { 'full', bound } end
  local order = nextOrder()
  local value = table.concat({
    table.concat({ order, #ws, text(rememberUntil), nonce, receivers }, ','), digest, type, payload,
  }, '\n')
  values[#values + 1] = key
  values[#values + 1] = value
  byteChange = byteChange + #value
  stored[rememberedKeys[place]] = { nonce = nonce, receivers = receivers, digest = digest }
  -- A test stands in the log like a delivery made later, which `recover` passes over.
  log.add(table.concat({ a, order, ek, type, table.concat(ws, ';') .. (isTest and '.0' or '') }, '/'), 0)
  if #ws == 0 then endEvent(a, account, ek, progressOf(a, ek, 0)) end
  local fresh = freshDelivery(order, #ws)
  for _, w in ipairs(ws) do
    local ref = w .. '/' .. ek
    queue.add(queueMember(ref, fresh.at), 0)
    if isTest then deliveries.set(ref, fresh) end
    touched[w] = true
  end
  count(a, 'pending', #ws)
  return { 'stored', receivers }
end

-- A key of another type, which somebody else made, has to be met before the first write.
for _, key in ipairs({ LOG, FAST, SLOW, ENDED, FREEING }) do call('ZCARD', key) end
for _, key in ipairs({ WEBHOOKS, IN_FLIGHT, PROGRESS, DELIVERIES }) do call('HLEN', key) end

local answers = {}
for i = FIRST, #ARGV, FIELDS do
  local place = #answers + 1
  answers[place] = append(place, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7])
end
-- The first write of all, unless an id only had to be remembered.
callMany('HSET', EVENTS, values)
boundEnded()
flush()
-- Ids that only had to be remembered come without a claim that would tidy up after them.
forgetSome(2 * #answers)
answers[#answers + 1] = hintAt and text(hintAt) or ''
return answers
