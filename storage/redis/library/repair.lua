-- Compares the counters of a partition with the records they count, and corrects them. They only
-- differ after a defect, a partial restore or a change by hand.
--
-- Options: part, and names: of the `accounts`, `deliveries` or `entries` of the log that follow; the
-- part `inFlight` has none. Replies with how many corrections were made.

local MAX_LEASES = 2000
-- How many corrections the call has made.
local repaired
local parts = {}

function parts.inFlight()
  if call('ZCARD', keys.leases) > MAX_LEASES or call('HLEN', keys.inFlight) > MAX_LEASES then return end
  local counts = {}
  for _, ref in ipairs(call('ZRANGE', keys.leases, 0, -1)) do
    local webhook = webhookOf(ref) or ''
    counts[webhook] = (counts[webhook] or 0) + 1
  end
  local stored = call('HGETALL', keys.inFlight)
  for i = 1, #stored, 2 do
    local webhook = stored[i]
    local wrong = (counts[webhook] or 0) - (inFlight:get(webhook) or 0)
    if not endpoints:get(webhook) then
      inFlight:delete(webhook)
    elseif wrong ~= 0 then
      changeInFlight(webhook, wrong)
      touched[webhook] = true
      repaired = repaired + 1
    end
  end
end

-- Repairs a delivery without a record: it was never claimed, so it has to be in the queue.
local function repairUnclaimed(webhook, account, event, order)
  local ref = webhook .. '/' .. event
  if deliveries:get(ref) or not endpoints:get(webhook) then return end
  local member = queueMember(account, ref, newDelivery(order))
  if call('ZSCORE', keys.queue, member) then return end
  queue:add(member, 0)
  touched[webhook] = true
  repaired = repaired + 1
end

-- Repairs an entry of the log. If its event is gone, the entry and its remaining deliveries are
-- deleted.
function parts.entries(entry)
  local account, order, event, label, receivers = string.match(entry, '^(%d+)/(%x+)/([^/]+)/([^/]*)/(.*)$')
  if not account then return end
  if call('HEXISTS', keys.events, account .. '/' .. event) == 1 then
    local isFirst = not string.find(receivers, '.', 1, true)
    for webhook in string.gmatch(isFirst and receivers or '', '%d+') do
      repairUnclaimed(webhook, account, event, order)
    end
    return
  end
  for ref, webhook in pairs(deliveriesIn(event, receivers)) do
    local d = deliveries:get(ref)
    if d and not d.isBroken and isOpen(d) then return end
    if d then
      deliveries:delete(ref)
      metaAdded.completed = metaAdded.completed - 1
      countDelivery(webhook, d, -1)
    end
  end
  log:remove(entry)
  forEachKey(account, order, event, label, keyIndex.remove)
  repaired = repaired + 1
end

-- Accounts of removed webhooks whose deliveries are still being freed. Their counts are right once
-- that is done.
local cleaned

function parts.accounts(name)
  local isReadable, account = pcall(readAccount, name)
  if not isReadable or not account or cleaned[account.number] then return end
  local pending = 0
  for webhook in string.gmatch(account.subscriptions, SUBSCRIPTION) do
    local from, to = below(webhook)
    -- An endpoint that is missing among the ready ones is added again, if its slots are known.
    if not options.isUnlimited then touched[webhook] = true end
    pending = pending + call('ZLEXCOUNT', keys.queue, from, to) + (inFlight:get(webhook) or 0)
  end
  local counts, from, to = getAccountCounts(account.number), below(account.number)
  local kept = call('ZLEXCOUNT', keys.completed, from, to)
  if counts.pending == pending and counts.completed == kept then return end
  repaired = repaired + 1
  accountCounts:set(account.number, { pending = pending, completed = kept, lastEventAt = counts.lastEventAt })
end

function parts.deliveries(ref)
  local webhook = webhookOf(ref)
  local endpoint, d = webhook and endpoints:get(webhook), deliveries:get(ref)
  if not endpoint or not d or d.isBroken or not isOpen(d) then return end
  local isInPlace
  if d.state == 'l' then
    isInPlace = call('ZSCORE', keys.leases, ref)
  else
    isInPlace = call('ZSCORE', keys.queue, queueMember(endpoint.accountNumber, ref, d))
  end
  if isInPlace or not getEvent(endpoint.accountNumber, eventOf(ref)) then return end
  if d.state == 'l' then d.crashes = text((tonumber(d.crashes) or 0) + 1) end
  enqueue(endpoint.accountNumber, ref, d)
  repaired = repaired + 1
end

define('repair', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  checkAllTypes()
  repaired, cleaned = 0, {}
  for _, removal in ipairs(call('HVALS', keys.removals)) do
    cleaned[string.match(removal, '^%d+') or ''] = true
  end
  if options.part == 'inFlight' then parts.inFlight() end
  for _, name in ipairs(options.names or {}) do parts[options.part](name) end
  flush()
  if notifyAt then repaired = repaired + 1 end
  return repaired
end)

local MAX_EXAMINED = 500

-- Counts the completed deliveries of an account's webhooks, a page of its log at a time. Once all
-- are counted it corrects the counts that differ.
--
-- Options: account, after: the order to continue after or empty, and counted: the counts of the pages
-- before. Replies: where to continue or empty, the counts so far, and how many were corrected.
define('repairCounts', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  checkAllTypes()
  local isReadable, account = pcall(readAccount, options.account)
  if not isReadable or not account then return { '', '', 0 } end

  -- By webhook: the counts, and a digest of those that were stored when the count began. What changed
  -- meanwhile is not corrected, because the count may have missed the change.
  local counted = options.counted and decode(options.counted) or {}
  local function digestOf(webhook) return redis.sha1hex(call('HGET', keys.webhookCounts, webhook) or '') end
  if options.after == '' then
    for webhook in string.gmatch(account.subscriptions, SUBSCRIPTION) do
      counted[webhook] = { digest = digestOf(webhook), d = 0, f = 0, w = 0, tests = 0 }
    end
  end

  local from, to = below(account.number)
  if options.after ~= '' then from = '[' .. account.number .. '/' .. options.after .. '0' end
  local entries = call('ZRANGEBYLEX', keys.log, from, to, 'LIMIT', 0, MAX_EXAMINED)
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
    if counts and state == 'f' and deliveries:get(ref).reason == 'test_failed' then
      counts.tests = counts.tests + 1
    end
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
end)
