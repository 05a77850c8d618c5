-- Erases events of an account with their deliveries in every state, and remembers their ids. Options:
-- account and events, their encoded ids.
--
-- Replies with how many events and deliveries were erased, and the events that are left for another
-- call.

checkTypes(
  { QUEUE, READY.f, READY.s, LEASES, LOG, EVENT_KEYS, COMPLETED, RETENTION, EXPIRATIONS, ACCOUNT_LIST },
  { WEBHOOKS, IN_FLIGHT, EVENTS, PROGRESS, DELIVERIES, ACCOUNT_COUNTS, WEBHOOK_COUNTS, REMEMBERED, RATES }
)
goOnWhenFull()

local COST_PER_CALL = 200

local account = readAccount(options.account)
local erased, deliveryCount, cost, left = 0, 0, 0, {}
for _, event in ipairs(options.events) do
  local stored = account and getEvent(account.number, event)
  if stored and cost >= COST_PER_CALL then
    left[#left + 1] = event
  elseif stored then
    local count = eraseEvent(account.number, event)
    if stored.rememberUntil > now then rememberEvent(event, options.account, stored) end
    erased, deliveryCount, cost = erased + 1, deliveryCount + count, cost + 1 + count
  end
end
flush()
if erased > 0 then deleteIfEmpty(account.number, options.account) end
return { erased, deliveryCount, left, text(notifyAt) }
