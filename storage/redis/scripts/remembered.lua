-- Values that are remembered until they expire: ids of events and replies of calls.

local function remember(field, value, expiresAt)
  call('HSET', REMEMBERED, field, value)
  call('ZADD', FORGETTING, text(expiresAt), field)
end

-- Replies of calls that cannot detect their own repetition. They are kept for as long as a client
-- may send the call again.
local REPLY_KEPT_MS = 600000

local function findReply(nonce) return call('HGET', REMEMBERED, 'a/' .. nonce) end
local function rememberReply(nonce, reply) remember('a/' .. nonce, reply, now + REPLY_KEPT_MS) end

local function forgetSome(most)
  local forgotten = call('ZRANGEBYSCORE', FORGETTING, '-inf', text(now), 'LIMIT', 0, most)
  callMany('HDEL', REMEMBERED, forgotten)
  callMany('ZREM', FORGETTING, forgotten)
end
