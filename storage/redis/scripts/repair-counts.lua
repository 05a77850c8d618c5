-- Counts the completed deliveries of an account's webhooks, a page of its log at a time. Once all
-- are counted it corrects the counts that differ.
--
-- Options: account, after: the order to continue after or empty, and counted: the counts of the pages
-- before. Replies: where to continue or empty, the counts so far, and how many were corrected.

goOnWhenFull()
local MAX_EXAMINED = 500
local isReadable, account = pcall(readAccount, options.account)
if not isReadable or not account then return { '', '', 0 } end

-- By webhook: the counts, and a digest of those that were stored when the count began. What changed
-- meanwhile is not corrected, because the count may have missed the change.
local counted = options.counted and decode(options.counted) or {}
local function digestOf(webhook) return redis.sha1hex(call('HGET', WEBHOOK_COUNTS, webhook) or '') end
if options.after == '' then
  for webhook in string.gmatch(account.subscriptions, SUBSCRIPTION) do
    counted[webhook] = { digest = digestOf(webhook), d = 0, f = 0, w = 0, tests = 0 }
  end
end

local from, to = below(account.number)
if options.after ~= '' then from = '[' .. account.number .. '/' .. options.after .. '0' end
local entries = call('ZRANGEBYLEX', LOG, from, to, 'LIMIT', 0, MAX_EXAMINED)
local refs, last = {}, ''
for _, entry in ipairs(entries) do
  local order, event, _, receivers = readEntry(entry)
  for ref in pairs(event and deliveriesIn(event, receivers) or {}) do refs[#refs + 1] = ref end
  last = order or last
end
deliveries:fetch(refs)
for _, ref in ipairs(refs) do
  local counts, value = counted[webhookOf(ref)], deliveries:text(ref)
  local state = value and string.match(value, '^([dfw]),')
  if counts and state then counts[state] = counts[state] + 1 end
  if counts and state == 'f' and deliveries:get(ref).reason == 'test_failed' then counts.tests = counts.tests + 1 end
end
if #entries == MAX_EXAMINED and last ~= '' then return { last, cjson.encode(counted), 0 } end

local repaired = 0
for webhook, right in pairs(counted) do
  local counts, isRight = getWebhookCounts(webhook), true
  for _, name in ipairs({ 'd', 'f', 'w', 'tests' }) do isRight = isRight and counts[name] == right[name] end
  if not isRight and endpoints:get(webhook) and digestOf(webhook) == right.digest then
    counts.d, counts.f, counts.w, counts.tests = right.d, right.f, right.w, right.tests
    webhookCounts:set(webhook, counts)
    repaired = repaired + 1
  end
end
flush()
return { '', '', repaired }
