-- Stores a webhook, once for its id and once for its idempotency key. Options: account, id, shortId,
-- enabledLimit, accountLimit, status, types, generation, updatedAt, failingSince, warnedAt, noticeAt,
-- endpointPerSecond, config; and field (of the remembered key), digest, expiresAt if it has such a key.

if options.field then
  local expiresAt, digest, value = string.match(call('HGET', REMEMBERED, options.field) or '', '^(%d+)\n([^\n]*)\n(.*)$')
  if expiresAt and tonumber(expiresAt) > now then
    -- The same call again, because its reply was lost, has the same id.
    local isAgain = string.find(value, '"id":"' .. options.id .. '"', 1, true)
    if digest == options.digest then return { isAgain and 'created' or 'replayed', value } end
    return { 'key_reused' }
  end
end
local stored = call('HGET', IDS, options.id)
if stored then return { 'created', call('HGET', WEBHOOKS, stored) } end

local account = readAccount(options.account)
local all, enabled = countWebhooks(account)
if all >= options.accountLimit then return { 'account_limit' } end
if options.status == 'E' and enabled >= options.enabledLimit then return { 'enabled_limit' } end

checkTypes({ ACCOUNT_LIST, FAILING, HEALTH, EXPIRATIONS }, { WEBHOOKS, REMEMBERED })
local number = account and account.number or text(call('HINCRBY', META, 'accounts', 1))
local webhook = text(call('HINCRBY', META, 'webhooks', 1))
local noticeAt = text(options.noticeAt)
local value = endpoints.write({
  accountNumber = number, account = options.account, status = options.status, generation = text(options.generation),
  updatedAt = text(options.updatedAt), failingSince = text(options.failingSince), warnedAt = text(options.warnedAt),
  noticeAt = noticeAt, lane = 's', slowStart = '', perSecond = text(options.endpointPerSecond),
  stored = '\n' .. options.config, restAt = 1,
})
local subscription = writeSubscription(webhook, options.status, options.shortId, options.types)
call('HSET', ACCOUNTS, options.account, number .. '\n' .. (account and account.subscriptions or '') .. subscription)
call('ZADD', ACCOUNT_LIST, number, options.account)
if options.failingSince then call('ZADD', FAILING, 0, failingMember(webhook, options.failingSince)) end
call('HSET', IDS, options.id, webhook)
call('HSET', WEBHOOKS, webhook, value)
if noticeAt ~= '' then call('ZADD', HEALTH, noticeAt, webhook) end
if options.field then
  remember(options.field, text(options.expiresAt) .. '\n' .. options.digest .. '\n' .. value, options.expiresAt)
end
return { 'created', value }
