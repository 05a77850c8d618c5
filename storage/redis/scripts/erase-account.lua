-- Erases a part of an account: its webhooks, then its events with their deliveries in every state,
-- then what is remembered of it. Options: account, and cursor, from which the remembered values are
-- searched; empty while there may be webhooks or events.
--
-- Replies with how many webhooks, events, deliveries and remembered values were erased, and the cursor
-- of the next call: empty if that starts with webhooks and events again, `-` once nothing is left.

checkTypes(
  { QUEUE, READY.f, READY.s, LEASES, HEALTH, LOG, EVENT_KEYS, COMPLETED, RETENTION, EXPIRATIONS, ACCOUNT_LIST, FAILING },
  { IDS, WEBHOOKS, IN_FLIGHT, EVENTS, PROGRESS, DELIVERIES, ACCOUNT_COUNTS, WEBHOOK_COUNTS, REMEMBERED, REMOVALS, RATES }
)
goOnWhenFull()

local WEBHOOKS_PER_CALL, COST_PER_CALL, SEARCHED_PER_CALL = 50, 200, 500
-- Reading all removals is cheap up to this number. More are left to `tidy`.
local MAX_REMOVALS = 1000

local name = options.account
local erased = { webhooks = 0, events = 0, deliveries = 0, remembered = 0 }

local function reply(cursor) return { erased.webhooks, erased.events, erased.deliveries, erased.remembered, cursor } end

local function eraseWebhooks(account)
  for webhook in string.gmatch(account.subscriptions, SUBSCRIPTION) do
    if erased.webhooks == WEBHOOKS_PER_CALL then break end
    -- If nobody goes on with the erasure, `tidy` frees the deliveries. Its end deletes this.
    call('HSET', REMOVALS, webhook, describeRemoval(account.number, name, endpoints:get(webhook)))
    removeWebhook(name, webhook)
    erased.webhooks = erased.webhooks + 1
  end
end

-- Erases the events of the oldest entries of the log, and entries without an event.
local function eraseEvents(account, entries)
  local cost = 0
  for _, entry in ipairs(entries) do
    if cost >= COST_PER_CALL then break end
    local order, event, label, receivers = readEntry(entry)
    local count = 0
    if event and getEvent(account.number, event) then
      count = eraseEvent(account.number, event)
      erased.events = erased.events + 1
    elseif event then
      count = eraseUnreadable(account.number, event, receivers)
      forEachKey(account.number, order, event, label, keyIndex.remove)
    end
    log:remove(entry)
    erased.deliveries, cost = erased.deliveries + count, cost + 1 + count
  end
end

-- Searches a part of the remembered values for those of the account.
local function forgetRemembered(cursor)
  local found = call('HSCAN', REMEMBERED, cursor, 'COUNT', SEARCHED_PER_CALL)
  local fields = {}
  for i = 1, #found[2], 2 do
    local field = found[2][i]
    if string.match(field, '^e/[^/]*/(.*)$') == name or string.match(field, '^r/([^/]*)/') == name then
      fields[#fields + 1] = field
    end
  end
  callMany('HDEL', REMEMBERED, fields)
  callMany('ZREM', EXPIRATIONS, fields)
  erased.remembered = #fields
  return found[1]
end

local function forgetRemovals()
  if call('HLEN', REMOVALS) > MAX_REMOVALS then return end
  local removals = call('HGETALL', REMOVALS)
  for i = 1, #removals, 2 do
    if string.match(removals[i + 1], '^%d+,([^,]*),') == name then call('HDEL', REMOVALS, removals[i]) end
  end
end

local account = readAccount(name)
if account and account.subscriptions ~= '' then
  eraseWebhooks(account)
  flush()
  return reply('')
end
local entries = {}
if account then
  local from, to = below(account.number)
  entries = call('ZRANGEBYLEX', LOG, from, to, 'LIMIT', 0, 100)
  if #entries > 0 then
    eraseEvents(account, entries)
    flush()
    return reply('')
  end
  -- Without an entry in the log nothing else finds these.
  local left = call('ZRANGEBYLEX', COMPLETED, from, to, 'LIMIT', 0, COST_PER_CALL)
  for _, member in ipairs(left) do erased.deliveries = erased.deliveries + eraseUnreadable(account.number, string.match(member, '[^/]+$'), '') end
  callMany('ZREM', COMPLETED, left)
  flush()
  if #left > 0 then return reply('') end
  call('HDEL', ACCOUNT_COUNTS, account.number)
  deleteIfEmpty(account.number, name)
  forgetRemovals()
  flush()
end
local cursor = forgetRemembered(options.cursor == '' and '0' or options.cursor)
return reply(cursor == '0' and '-' or cursor)
