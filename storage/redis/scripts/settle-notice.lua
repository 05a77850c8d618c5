-- Records a health step, if the webhook is still failing since the same time and has the status
-- that the step was decided on.
--
-- ARGV: account, id, failing since, from, status, warned, notice at, nonce.

local account, id, failingSince, from, status, warnedAt, noticeAt =
  ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
if findReply(ARGV[12]) then return 1 end
local w = call('HGET', IDS, id)
local e = w and endpoints.get(w)
if not e or e.account ~= account or e.failingSince ~= failingSince or e.status ~= from then return 0 end

goOnWhenFull()
if status ~= e.status then
  touch(w, e)
  e.status = status
  changeRoster(account, w, function(_, types) return status, types end)
end
e.warnedAt = warnedAt
setNotice(w, e, noticeAt)
if noticeAt ~= '' then notifyWorkers(tonumber(noticeAt)) end
flush()
rememberReply(ARGV[12], '')
return 1
