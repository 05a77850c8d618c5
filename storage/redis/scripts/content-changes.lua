-- What changed since a commit, each record once: sequence and nonce of the last commit, then key and columns in turn. 'reload' where that cannot be told.
-- ARGV: sequence, its nonce or '' where the caller does not know it.

local since, nonce = tonumber(ARGV[1]), ARGV[2]
local sequence, last = lastCommit()
local forgotten = tonumber(call('HGET', META, 'forgotten') or 0)
if since > sequence or since < forgotten then return 'reload' end
-- The data may be another set than the caller has seen: emptied and filled again, or gone back to an older state.
if nonce ~= '' and tonumber(call('ZSCORE', COMMITS, nonce) or -1) ~= since then return 'reload' end

local keys = call('ZRANGEBYSCORE', CHANGES, '(' .. ARGV[1], '+inf')
local columns, missing = fieldsOf(COLUMNS, keys), {}
for _, key in ipairs(keys) do
  if not columns[key] then missing[#missing + 1] = key end
end
local heads = fieldsOf(HEADS, missing)
local reply = { sequence, last }
for _, key in ipairs(keys) do
  reply[#reply + 1] = key
  reply[#reply + 1] = columns[key] or versionOf(heads[key])
end
return reply
