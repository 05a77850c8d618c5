-- Erasing events and accounts, with their deliveries in every state.

-- Events and deliveries that one call erases together, at least one event.
local COST_PER_CALL = 200
local WEBHOOKS_PER_CALL, ENTRIES_PER_CALL, SEARCHED_PER_CALL = 50, 100, 500
-- Reading all removals is cheap up to this number. More are left to `tidy`.
local MAX_REMOVALS = 1000
-- Failing webhooks among which that of an unreadable record is searched. Beyond them its entry stays: a
-- time and a number.
local MAX_FAILING = 1000

-- Erases events of an account with their deliveries in every state, and remembers their ids. Options:
-- account, nonce, and events, their encoded ids.
--
-- Replies with how many events and deliveries were erased, the events that are left for another call,
-- and the time that workers are notified of.
define('eraseEvents', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  checkAllTypes()
  local repeated = findReply()
  if repeated then return cjson.decode(repeated) end
  local account = readAccount(options.account)
  local erased, deliveryCount, left = 0, 0, {}
  for _, event in ipairs(options.events) do
    local stored = account and getEvent(account.number, event)
    if stored and erased + deliveryCount >= COST_PER_CALL then
      left[#left + 1] = event
    elseif stored then
      deliveryCount = deliveryCount + deleteEvent(account.number, event)
      rememberEvent(event, options.account, stored)
      erased = erased + 1
    end
  end
  flush()
  local reply = { erased, deliveryCount, left, text(notifyAt) }
  if erased > 0 then
    deleteIfEmpty(account.number, options.account)
    rememberReply(cjson.encode(reply))
  end
  return reply
end)

local BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

-- Returns the UUID of an encoded id (codec.ts).
local function decodeUuid(short)
  local digits = {}
  for first, second in string.gmatch(short, '(.)(.)') do
    local high, low = string.find(BASE64URL, first, 1, true), string.find(BASE64URL, second, 1, true)
    digits[#digits + 1] = string.format('%03x', 64 * ((high or 1) - 1) + (low or 1) - 1)
  end
  local all, parts = table.concat(digits), { { 1, 8 }, { 9, 12 }, { 13, 16 }, { 17, 20 }, { 21, 32 } }
  for i, part in ipairs(parts) do parts[i] = string.sub(all, part[1], part[2]) end
  return table.concat(parts, '-')
end

-- Deletes the entries of a webhook that only its record tells, which cannot be read. `short`: its
-- encoded id.
local function deleteUnreadable(webhook, short)
  call('HDEL', keys.ids, decodeUuid(short))
  for _, member in ipairs(call('ZRANGEBYLEX', keys.failing, '-', '+', 'LIMIT', 0, MAX_FAILING)) do
    if string.match(member, '/(%d+)$') == webhook then failing:remove(member) end
  end
end

-- Writes the subscriptions once for all webhooks of a call, since an account may have thousands.
local function eraseWebhooks(account, erased)
  local leftAt = #account.subscriptions + 1
  for webhook, _, id, _, nextAt in string.gmatch(account.subscriptions, SUBSCRIPTION .. '()') do
    local endpoint = endpoints:get(webhook)
    -- If nobody goes on with the erasure, `tidy` frees the deliveries. Its end deletes this.
    call('HSET', keys.removals, webhook, describeRemoval(account.number, options.account, endpoint))
    deleteWebhook(webhook)
    if not endpoint then deleteUnreadable(webhook, id) end
    erased.webhooks = erased.webhooks + 1
    if erased.webhooks == WEBHOOKS_PER_CALL then
      leftAt = nextAt
      break
    end
  end
  local left = string.sub(account.subscriptions, leftAt)
  call('HSET', keys.accounts, options.account, account.number .. '\n' .. left)
end

-- Erases what is left of an event whose record is missing or cannot be read.
local function eraseUnreadable(account, event, receivers)
  local erased = 0
  for ref in pairs(deliveriesIn(event, receivers)) do
    local d = deleteDelivery(account, ref)
    if d then erased = erased + 1 end
    if d and isOpen(d) then count(account, 'pending', -1) end
  end
  deleteRecord(account, event)
  return erased
end

-- Erases the events of the oldest entries of the log, and entries without an event.
local function eraseOldest(account, entries, erased)
  local cost = 0
  for _, entry in ipairs(entries) do
    if cost >= COST_PER_CALL then break end
    local order, event, label, receivers = readEntry(entry)
    local sum = 0
    if event and getEvent(account, event) then
      sum = deleteEvent(account, event)
      erased.events = erased.events + 1
    elseif event then
      sum = eraseUnreadable(account, event, receivers)
      forEachKey(account, order, event, label, keyIndex.remove)
    end
    log:remove(entry)
    erased.deliveries, cost = erased.deliveries + sum, cost + 1 + sum
  end
end

-- Searches a part of the remembered values for those of the account. Returns the next cursor.
local function forgetRemembered(cursor, erased)
  local found = call('HSCAN', keys.remembered, cursor, 'COUNT', SEARCHED_PER_CALL)
  local fields = {}
  for i = 1, #found[2], 2 do
    local field = found[2][i]
    if (string.match(field, '^e/[^/]*/(.*)$') or string.match(field, '^r/([^/]*)/')) == options.account then
      fields[#fields + 1] = field
    end
  end
  callMany('HDEL', keys.remembered, fields)
  callMany('ZREM', keys.expirations, fields)
  erased.remembered = #fields
  return found[1]
end

local function forgetRemovals()
  if call('HLEN', keys.removals) > MAX_REMOVALS then return end
  local removals = call('HGETALL', keys.removals)
  for i = 1, #removals, 2 do
    if string.match(removals[i + 1], '^%d+,([^,]*),') == options.account then
      call('HDEL', keys.removals, removals[i])
    end
  end
end

-- Erases a part of the records of an account: webhooks, then events. Returns false if nothing is left.
local function eraseRecords(account, erased)
  if account.subscriptions ~= '' then
    eraseWebhooks(account, erased)
    return true
  end
  local entries = listBelow(keys.log, account.number, '', ENTRIES_PER_CALL)
  eraseOldest(account.number, entries, erased)
  if #entries > 0 then return true end
  -- Without an entry in the log nothing else finds these.
  local left = listBelow(keys.completed, account.number, '', COST_PER_CALL)
  for _, member in ipairs(left) do eraseUnreadable(account.number, string.match(member, '[^/]+$'), '') end
  callMany('ZREM', keys.completed, left)
  return #left > 0
end

-- Erases a part of an account: its webhooks, then its events with their deliveries in every state,
-- then what is remembered of it. Options: account; nonce; and cursor, from which the remembered values
-- are searched; empty while there may be webhooks or events.
--
-- Replies with how many webhooks, events, deliveries and remembered values were erased, and the cursor
-- of the next call: empty if that starts with webhooks and events again, `-` once nothing is left.
define('eraseAccount', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  checkAllTypes()
  local repeated = findReply()
  if repeated then return cjson.decode(repeated) end
  local erased = { webhooks = 0, events = 0, deliveries = 0, remembered = 0 }
  local account, cursor = readAccount(options.account), ''
  local isLeft = account and eraseRecords(account, erased)
  flush()
  if not isLeft then
    if account then
      call('HDEL', keys.accountCounts, account.number)
      deleteIfEmpty(account.number, options.account)
      forgetRemovals()
      flush()
    end
    cursor = forgetRemembered(options.cursor == '' and '0' or options.cursor, erased)
    if cursor == '0' then cursor = '-' end
  end
  local reply = { erased.webhooks, erased.events, erased.deliveries, erased.remembered, cursor }
  if erased.webhooks + erased.events + erased.deliveries + erased.remembered > 0 then
    rememberReply(cjson.encode(reply))
  end
  return reply
end)
