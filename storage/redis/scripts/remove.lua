-- Removes a webhook. Other scripts no longer see it; its deliveries are freed page by page.
-- ARGV: account, id, nonce.

local account, id, nonce = ARGV[5], ARGV[6], ARGV[7]
if findReply(nonce) then return 1 end
local w = call('HGET', IDS, id)
local e = w and endpoints.get(w)
if not e or e.account ~= account then return 0 end

local from, to = below(w)
local own = getTally(w)
local isEmpty = call('ZLEXCOUNT', QUEUE, from, to) + (inFlight.get(w) or 0) + own.d + own.f + own.w == 0
-- Deliveries of the webhook are not older than the webhook. The minute allows for clocks that
-- differ.
local createdAt = tonumber(string.match(e.config, '"createdAt":(%d+)') or 0)

goOnWhenFull()
if perSecond then call('HDEL', RATES, w) end
changeRoster(account, w, function() return nil end)
call('HDEL', IDS, id)
endpoints.delete(w)
inFlight.delete(w)
tallies.delete(w)
tallies.delete(w .. '/h')
call('ZREM', FAST, w)
call('ZREM', SLOW, w)
call('ZREM', NOTICES, w)
rememberReply(nonce, '')
-- Without deliveries there is nothing to free. So creating and removing a webhook costs the same
-- for any length of the log.
if isEmpty then dropIfEmpty(e.a, account) else cleanRemoved(w, e.a .. ',' .. account .. ',' .. hex(createdAt - 60000)) end
flush()
return 1
