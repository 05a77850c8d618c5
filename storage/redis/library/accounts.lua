-- Accounts with their subscriptions, and what is remembered for them.

-- `A⏎`, then a line for each webhook, oldest first.
local SUBSCRIPTION = '(%d+) (%a) (%S+) ([^\n]*)\n'

local function readAccount(name)
  local value = call('HGET', keys.accounts, name)
  if not value then return nil end
  local number, subscriptions = string.match(value, '^(%d+)\n(.*)$')
  -- Without it the receivers of an event are unknown, so the call fails.
  if not number then error('the webhooks of an account cannot be read') end
  return { number = number, subscriptions = subscriptions }
end

local function writeSubscription(webhook, status, id, types)
  return webhook .. ' ' .. status .. ' ' .. id .. ' ' .. types .. '\n'
end

-- Counts the webhooks of an account, and those that are ENABLED.
local function countWebhooks(account)
  local all, enabled = 0, 0
  for _, status in string.gmatch(account and account.subscriptions or '', SUBSCRIPTION) do
    all = all + 1
    if status == 'E' then enabled = enabled + 1 end
  end
  return all, enabled
end

-- Replaces the line of a webhook. `change` returns its new status and types, or nothing to remove
-- the line.
local function changeSubscription(name, webhook, change)
  local account = readAccount(name)
  if not account then return end
  local subscriptions = string.gsub(account.subscriptions, SUBSCRIPTION, function(number, status, id, types)
    if number ~= webhook then return nil end
    status, types = change(status, types)
    return status and writeSubscription(webhook, status, id, types) or ''
  end)
  call('HSET', keys.accounts, name, account.number .. '\n' .. subscriptions)
end

-- Stamps a change that users see. Each is later than the one before, also within one millisecond.
local function stampUpdate(webhook, endpoint)
  endpoint.updatedAt = text(math.max(now, tonumber(endpoint.updatedAt) + 1))
  endpoints:set(webhook, endpoint)
end

-- Values that are remembered until they expire: ids of events and replies of calls.
local function remember(field, value, expiresAt)
  call('HSET', keys.remembered, field, value)
  call('ZADD', keys.expirations, text(expiresAt), field)
end

-- Replies of calls that cannot detect their own repetition are kept for as long as a client may send
-- the call again.
local REPLY_KEPT_MS = 600000

local function findReply() return call('HGET', keys.remembered, 'a/' .. options.nonce) end
local function rememberReply(reply) remember('a/' .. options.nonce, reply, now + REPLY_KEPT_MS) end

local function forgetExpired(limit)
  local expired = call('ZRANGEBYSCORE', keys.expirations, '-inf', text(now), 'LIMIT', 0, limit)
  callMany('HDEL', keys.remembered, expired)
  callMany('ZREM', keys.expirations, expired)
end
