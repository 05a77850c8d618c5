-- Leases the health notifications that are due, by postponing them. Options: leaseUntil, limit,
-- nonce. Replies with the records of the webhooks, and with when the next notification is due.

checkTypes({ EXPIRATIONS }, {})
goOnWhenFull()
local records, webhooks = {}, {}
-- The same call again, because its reply was lost.
for webhook in string.gmatch(findReply() or '', '%d+') do records[#records + 1] = endpoints:text(webhook) or nil end
local limit = #records > 0 and 0 or options.limit
for _, webhook in ipairs(call('ZRANGEBYSCORE', HEALTH, '-inf', text(now), 'LIMIT', 0, limit)) do
  local endpoint = endpoints:get(webhook)
  if endpoint then
    setNoticeAt(webhook, endpoint, text(options.leaseUntil))
    records[#records + 1] = endpoints:text(webhook)
    webhooks[#webhooks + 1] = webhook
  else
    call('ZREM', HEALTH, webhook)
  end
end
flush()
if #webhooks > 0 then rememberReply(table.concat(webhooks, ' ')) end
return { records, call('ZRANGE', HEALTH, 0, 0, 'WITHSCORES')[2] or '' }
