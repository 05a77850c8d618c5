-- Allocates consecutive ids. ARGV: kind, how many, nonce. Replies with the first id.

local kind, count, nonce = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local last, first, by = string.match(call('HGET', IDS, kind) or '0,0,', '^(%d+),(%d+),(.*)$')
-- The same call again, because its reply was lost. If another call came between, this one gets
-- other ids.
if by == nonce then return tonumber(first) end
first = tonumber(last) + 1
call('HSET', IDS, kind, string.format('%.0f,%.0f,%s', tonumber(last) + count, first, nonce))
return first
