-- Lists the records that changed after a commit, each once.
--
-- ARGV: sequence of the commit, its nonce or '' if the caller does not know it.
--
-- Replies with the sequence and nonce of the last commit that the reply covers, `1` if later ones
-- follow, then key and columns in turn. Replies `reload` if the changes are not known.

local since, nonce = tonumber(ARGV[1]), ARGV[2]
local MOST_READ = 500
local sequence, last = lastCommit()
local forgotten = tonumber(call('HGET', META, 'forgotten') or 0)
if since > sequence or since < forgotten then return 'reload' end
-- The data may not be the set that the caller has seen: it was emptied and filled again, or
-- restored from an older state.
if nonce ~= '' and tonumber(call('ZSCORE', COMMITS, nonce) or -1) ~= since then return 'reload' end

local keys = call('ZRANGEBYSCORE', CHANGES, '(' .. ARGV[1], '+inf', 'LIMIT', 0, MOST_READ)
local isMore = #keys == MOST_READ
if isMore then
  -- A page ends with a whole commit, which has at most 10 000 records.
  local covered = call('ZSCORE', CHANGES, keys[#keys])
  local isListed = {}
  for _, key in ipairs(keys) do isListed[key] = true end
  for _, key in ipairs(call('ZRANGEBYSCORE', CHANGES, covered, covered, 'LIMIT', 0, 10000)) do
    if not isListed[key] then keys[#keys + 1] = key end
  end
  sequence, last = tonumber(covered), call('ZRANGEBYSCORE', COMMITS, covered, covered, 'LIMIT', 0, 1)[1] or ''
end
local columns, missing = getFields(COLUMNS, keys), {}
for _, key in ipairs(keys) do
  if not columns[key] then missing[#missing + 1] = key end
end
local heads = getFields(HEADS, missing)
local reply = { sequence, last, isMore and 1 or 0 }
for _, key in ipairs(keys) do
  reply[#reply + 1] = key
  reply[#reply + 1] = columns[key] or versionOf(heads[key])
end
return reply
