-- Stores a webhook, once for its id and once for its idempotency key.
--
-- ARGV: account, id, short id, most ENABLED, most in all, status, types, generation, updated,
-- failing since, warned, notice at, config, idempotency field, digest, expires.

local account, id, short = ARGV[5], ARGV[6], ARGV[7]
local enabledLimit, accountLimit = tonumber(ARGV[8]), tonumber(ARGV[9])
local status, types, noticeAt, config = ARGV[10], ARGV[11], ARGV[16], ARGV[17]
local key, digest, expiresAt = ARGV[18], ARGV[19], ARGV[20]

if key ~= '' then
  local known = call('HGET', REMEMBERED, key)
  local expires, of, value = string.match(known or '', '^(%d+)\n([^\n]*)\n(.*)$')
  if expires and tonumber(expires) > now then
    -- The same call again, because its reply was lost, has the same id.
    local isAgain = string.find(value, '"id":"' .. id .. '"', 1, true)
    if of == digest then return { isAgain and 'created' or 'replayed', value } end
    return { 'key_reused' }
  end
end
local stored = call('HGET', IDS, id)
if stored then return { 'created', call('HGET', WEBHOOKS, stored) } end

local roster = readRoster(account)
local all, enabled = countRoster(roster)
if all >= accountLimit then return { 'account_limit' } end
if status == 'E' and enabled >= enabledLimit then return { 'enabled_limit' } end

local a = roster and roster.a or text(call('HINCRBY', META, 'accounts', 1))
local w = text(call('HINCRBY', META, 'webhooks', 1))
local e = {
  a = a, account = account, status = status, generation = ARGV[12], updatedAt = ARGV[13], failingSince = ARGV[14],
  warnedAt = ARGV[15], noticeAt = noticeAt, lane = 's', slowStart = '', more = '', config = '\n' .. config,
}
local value = endpointText(e)
call('HSET', ACCOUNTS, account, a .. '\n' .. (roster and roster.lines or '') .. rosterLine(w, status, short, types))
call('HSET', IDS, id, w)
call('HSET', WEBHOOKS, w, value)
if noticeAt ~= '' then call('ZADD', NOTICES, noticeAt, w) end
if key ~= '' then remember(key, expiresAt .. '\n' .. digest .. '\n' .. value, expiresAt) end
return { 'created', value }
