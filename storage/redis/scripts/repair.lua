-- Compares the counters of a partition with the records they count, and corrects them. They only
-- differ after a defect, a partial restore or a change by hand.
--
-- ARGV[5]: `in-flight` for the counts of leases, `counters` of the accounts that follow, `places`
-- of the deliveries that follow, or the `entries` of the log that follow.
--
-- Replies with how many corrections were made.

goOnWhenFull()
local repaired = 0
local MOST_LEASES, ANY_NUMBER = 2000, 1000000

local function repairInFlight()
  if call('ZCARD', LEASES) > MOST_LEASES or call('HLEN', IN_FLIGHT) > MOST_LEASES then return end
  local counts = {}
  for _, ref in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    local w = webhookOf(ref)
    counts[w] = (counts[w] or 0) + 1
  end
  local known = call('HGETALL', IN_FLIGHT)
  for i = 1, #known, 2 do
    local w, right = known[i], counts[known[i]] or 0
    local e, own = endpoints.get(w), inFlight.get(w) or 0
    if not e then
      inFlight.delete(w)
    elseif own ~= right then
      lease(w, right - own)
      touched[w] = true
      repaired = repaired + 1
    end
  end
end

-- Accounts of removed webhooks whose deliveries are still being freed. Their books are right once
-- that is done.
local cleaned = {}
for _, removal in ipairs(call('HVALS', REMOVALS)) do cleaned[string.match(removal, '^%d+') or ''] = true end

-- Repairs a delivery without a record: it was never claimed, so it has to be in the queue.
local function repairFresh(w, ek, order)
  local ref = w .. '/' .. ek
  if deliveries.get(ref) or not endpoints.get(w) then return end
  local d = freshDelivery(order, 0)
  local member = queueMember(ref, d.at)
  if call('ZSCORE', QUEUE, member) then return end
  queue.add(member, 0)
  touched[w] = true
  repaired = repaired + 1
end

-- Repairs an entry of the log. If its event is gone, the entry and its remaining deliveries are
-- deleted.
local function repairEntry(entry)
  local a, order, ek, receivers = string.match(entry, '^(%d+)/(%x+)/([^/]+)/[^/]*/(.*)$')
  if not a then return end
  if call('HEXISTS', EVENTS, a .. '/' .. ek) == 1 then
    local isFirst = not string.find(receivers, '.', 1, true)
    for w in string.gmatch(isFirst and receivers or '', '%d+') do repairFresh(w, ek, order) end
    return
  end
  for ref, w in pairs(deliveriesIn(ek, receivers)) do
    local d = deliveries.get(ref)
    if d and not d.isBroken and isOpen(d) then return end
    if d then
      deliveries.delete(ref)
      endedChange = endedChange - 1
      tally(w, d, -1)
    end
  end
  log.remove(entry)
  repaired = repaired + 1
end

local function repairAccount(account)
  local isReadable, roster = pcall(readRoster, account)
  if not isReadable or not roster or cleaned[roster.a] then return end
  local right = 0
  for w in string.gmatch(roster.lines, '(%d+) [^\n]*\n') do
    local from, to = below(w)
    -- An endpoint that is missing among the ready ones is added again.
    if perEndpoint < ANY_NUMBER then touched[w] = true end
    right = right + call('ZLEXCOUNT', QUEUE, from, to) + (inFlight.get(w) or 0)
  end
  local own = book(roster.a)
  local from, to = below(roster.a)
  local kept = call('ZLEXCOUNT', ENDED, from, to)
  if own.pending ~= right or own.ended ~= kept then
    repaired = repaired + 1
    count(roster.a, 'pending', right - own.pending)
    count(roster.a, 'ended', kept - own.ended)
  end
end

local function repairPlace(ref)
  local w = webhookOf(ref)
  local e = w and endpoints.get(w)
  local d = e and deliveries.get(ref)
  if not d or d.isBroken or d.isShort and d.state == 'd' then return end
  d = delivery(e.a, ref)
  if not d then return end
  local isQueued = call('ZSCORE', QUEUE, queueMember(ref, d.at))
  local isLeased = call('ZSCORE', LEASES, ref)
  if (d.state == 'l' and not isLeased) or (d.state == 'p' and not isQueued) then
    if d.state == 'l' then d.crashes = text(tonumber(d.crashes) + 1) end
    enqueue(ref, d)
    repaired = repaired + 1
  end
end

if ARGV[5] == 'in-flight' then
  repairInFlight()
elseif ARGV[5] == 'counters' then
  for i = 6, #ARGV do repairAccount(ARGV[i]) end
elseif ARGV[5] == 'entries' then
  for i = 6, #ARGV do repairEntry(ARGV[i]) end
else
  for i = 6, #ARGV do repairPlace(ARGV[i]) end
end
notifyAt = nil
flush()
if notifyAt then repaired = repaired + 1 end
return repaired
