-- Schedules one more attempt: of the waiting delivery to this webhook, or of a new delivery.
--
-- ARGV: most pending, most pending of an account, account, webhook's id, the suffix of the
-- delivery, `1` to do it even if an attempt is in flight.
--
-- Replies: empty if there is no such delivery, `full` with the bound, `inflight` with the suffix, or
-- `sent` with the suffix and the time that workers are notified of.

local mostPending, mostPendingPerAccount = tonumber(ARGV[5]), tonumber(ARGV[6])
local account, id, suffix, force = ARGV[7], ARGV[8], ARGV[9], ARGV[10] == '1'
local w = call('HGET', IDS, id)
local e = w and endpoints.get(w)
if not e or e.account ~= account then return {} end
local ek = eventOf('/' .. suffix)
local event = storedEvent(e.a, ek)
if not event or not delivery(e.a, w .. '/' .. suffix) then return {} end

local waiting, inFlight
local found, nextSerial = deliveriesTo(w, e, ek, event)
for _, item in ipairs(found) do
  if item[2].state == 'l' then inFlight = item[1] end
  if item[2].state == 'p' and not waiting then waiting = item end
end
if inFlight and not force then return { 'inflight', suffixOf(inFlight) } end
local sent
if waiting then
  local ref, d = waiting[1], waiting[2]
  sent = ref
  if (tonumber(d.extraAt) or tonumber(d.dueAt)) > now then
    goOnWhenFull()
    queue.remove(queueMember(ref, d.at))
    d.extraAt = text(now)
    enqueue(ref, d)
  end
else
  local bound = passedBound(e.a, 1, mostPending, mostPendingPerAccount)
  if bound then return { 'full', bound } end
  sent = addDelivery(w, e, ek, event, nextSerial, now)
end
progresses.flush()
flush()
return { 'sent', suffixOf(sent), notifyAt and text(notifyAt) or '' }
