-- Removes a webhook. Other scripts no longer see it; its deliveries are freed page by page. Options:
-- account, id, nonce.

if findReply() then return 1 end
local webhook, endpoint = findEndpoint(options.account, options.id)
if not webhook then return 0 end

local from, to = below(webhook)
local counts = getWebhookCounts(webhook)
local isEmpty = call('ZLEXCOUNT', QUEUE, from, to) + (inFlight:get(webhook) or 0) + counts.d + counts.f + counts.w == 0
local removal = describeRemoval(endpoint.accountNumber, options.account, endpoint)

checkTypes(
  { QUEUE, READY.f, READY.s, LEASES, HEALTH, LOG, EVENT_KEYS, COMPLETED, RETENTION, EXPIRATIONS, ACCOUNT_LIST, FAILING },
  { ACCOUNTS, IN_FLIGHT, EVENTS, PROGRESS, DELIVERIES, REMEMBERED, REMOVALS, ACCOUNT_COUNTS, WEBHOOK_COUNTS, RATES }
)
goOnWhenFull()
removeWebhook(options.account, webhook)
rememberReply('')
-- Without deliveries there is nothing to free. So creating and removing a webhook costs the same
-- for any length of the log.
if isEmpty then
  deleteIfEmpty(endpoint.accountNumber, options.account)
else
  cleanRemoved(webhook, removal)
end
flush()
return 1
