-- Records a health step, if the webhook is still failing since the same time and has the status that
-- the step was decided on. Options: account, id, failingSince, from, status, warnedAt, noticeAt, nonce.

if findReply() then return 1 end
local webhook, endpoint = findEndpoint(options.account, options.id)
if not webhook or endpoint.failingSince ~= text(options.failingSince) or endpoint.status ~= options.from then return 0 end

checkTypes({ HEALTH, EXPIRATIONS }, {})
goOnWhenFull()
if options.status ~= endpoint.status then
  stampUpdate(webhook, endpoint)
  endpoint.status = options.status
  changeSubscription(options.account, webhook, function(_, types) return options.status, types end)
end
endpoint.warnedAt = text(options.warnedAt)
setNoticeAt(webhook, endpoint, text(options.noticeAt))
if options.noticeAt then notifyWorkers(options.noticeAt) end
flush()
rememberReply('')
return 1
