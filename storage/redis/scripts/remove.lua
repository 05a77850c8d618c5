-- Removes a webhook at once for all other scripts; what it held is freed by pages.
-- ARGV: account, id, nonce.

local account, id, nonce = ARGV[5], ARGV[6], ARGV[7]
if answerOf(nonce) then return 1 end
local w = call('HGET', IDS, id)
local e = w and endpoints.get(w)
if not e or e.account ~= account then return 0 end

goOnWhenFull()
changeRoster(account, w, function() return nil end)
call('HDEL', IDS, id)
endpoints.delete(w)
inFlight.delete(w)
tallies.delete(w)
call('ZREM', FAST, w)
call('ZREM', SLOW, w)
call('ZREM', NOTICES, w)
rememberAnswer(nonce, '')
cleanRemoved(w, e.a .. ',' .. account .. ',')
flush()
return 1
