-- Compares the counters of a partition with the records they count, and corrects them. They only
-- differ after a defect, a partial restore or a change by hand.
--
-- Options: part, and names: of the `accounts`, `deliveries` or `entries` of the log that follow; the
-- part `inFlight` has none. Replies with how many corrections were made.

goOnWhenFull()
local repaired = 0
local MAX_LEASES = 2000
local parts = {}

function parts.inFlight()
  if call('ZCARD', LEASES) > MAX_LEASES or call('HLEN', IN_FLIGHT) > MAX_LEASES then return end
  local counts = {}
  for _, ref in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    local webhook = webhookOf(ref) or ''
    counts[webhook] = (counts[webhook] or 0) + 1
  end
  local stored = call('HGETALL', IN_FLIGHT)
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
  if call('ZSCORE', QUEUE, member) then return end
  queue:add(member, 0)
  touched[webhook] = true
  repaired = repaired + 1
end

-- Repairs an entry of the log. If its event is gone, the entry and its remaining deliveries are
-- deleted.
function parts.entries(entry)
  local account, order, event, label, receivers = string.match(entry, '^(%d+)/(%x+)/([^/]+)/([^/]*)/(.*)$')
  if not account then return end
  if call('HEXISTS', EVENTS, account .. '/' .. event) == 1 then
    local isFirst = not string.find(receivers, '.', 1, true)
    for webhook in string.gmatch(isFirst and receivers or '', '%d+') do repairUnclaimed(webhook, account, event, order) end
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
local cleaned = {}
for _, removal in ipairs(call('HVALS', REMOVALS)) do cleaned[string.match(removal, '^%d+') or ''] = true end

function parts.accounts(name)
  local isReadable, account = pcall(readAccount, name)
  if not isReadable or not account or cleaned[account.number] then return end
  local pending = 0
  for webhook in string.gmatch(account.subscriptions, SUBSCRIPTION) do
    local from, to = below(webhook)
    -- An endpoint that is missing among the ready ones is added again, if its slots are known.
    if not options.isUnlimited then touched[webhook] = true end
    pending = pending + call('ZLEXCOUNT', QUEUE, from, to) + (inFlight:get(webhook) or 0)
  end
  local counts, from, to = getAccountCounts(account.number), below(account.number)
  local kept = call('ZLEXCOUNT', COMPLETED, from, to)
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
    isInPlace = call('ZSCORE', LEASES, ref)
  else
    isInPlace = call('ZSCORE', QUEUE, queueMember(endpoint.accountNumber, ref, d))
  end
  if isInPlace or not getEvent(endpoint.accountNumber, eventOf(ref)) then return end
  if d.state == 'l' then d.crashes = text((tonumber(d.crashes) or 0) + 1) end
  enqueue(endpoint.accountNumber, ref, d)
  repaired = repaired + 1
end

if options.part == 'inFlight' then parts.inFlight() end
for _, name in ipairs(options.names or {}) do parts[options.part](name) end
flush()
if notifyAt then repaired = repaired + 1 end
return repaired
