-- Schedules one more attempt: of the waiting delivery to this webhook, or of a new delivery. Options,
-- beside those of lib/later.lua: suffix of the delivery; force: even if an attempt is in flight.
--
-- Replies: empty if there is no such delivery, `full` with the bound, `inflight` with the suffix, or
-- `sent` with the suffix and the time that workers are notified of.

local webhook, endpoint = findEndpoint(options.account, options.id)
if not webhook then return {} end
local account, event = endpoint.accountNumber, string.match(options.suffix, '^[^.]*')
local stored = getEvent(account, event)
local first = webhook .. '/' .. event
if not stored or not getDelivery(account, webhook .. '/' .. options.suffix) then return {} end

local waiting, leased
local nextSerial = getDelivery(account, first) and 1 or 0
local refs = { first }
for _, serial in ipairs(listSerials(account, event, webhook)) do
  refs[#refs + 1] = toRef(webhook, event, serial)
  nextSerial = tonumber(serial) + 1
end
for _, ref in ipairs(refs) do
  local d = getDelivery(account, ref)
  if d and d.state == 'l' then leased = ref end
  if d and d.state == 'p' and not waiting then waiting = ref end
end
if leased and not options.force then return { 'inflight', suffixOf(leased) } end

checkTypes({ READY.f, READY.s, LOG, COMPLETED }, { IN_FLIGHT, RATES })
local sent = waiting
if waiting then
  local d = getDelivery(account, waiting)
  if (tonumber(d.extraAt) or tonumber(d.dueAt) or createdAtOf(account, waiting, d)) > now then
    goOnWhenFull()
    requestExtra(account, waiting, now)
  end
else
  local bound = findExceeded(account, 1)
  if bound then return { 'full', bound } end
  sent = addDelivery(webhook, endpoint, event, stored.label, nextSerial, now)
end
flush()
return { 'sent', suffixOf(sent), text(notifyAt) }
