-- Freeing, page by page, what has expired, what removed webhooks held, and what is erased.

-- The most completed events of an account that one call frees, and entries of the log that it reads
-- for a removed webhook.
local FREED_OF_ACCOUNT, CLEANED_PER_CALL = 100, 100
-- The most completed events that one call frees because their retention is over.
local FREED_PER_CALL = 200
-- The most expired leases of one call.
local RECOVERED_PER_CALL = 100

-- Deletes an account that has neither webhooks nor events.
function deleteIfEmpty(account, name)
  local hasWebhooks = call('HGET', keys.accounts, name) ~= account .. '\n'
  if not hasWebhooks and not firstBelow(keys.log, account) and not firstBelow(keys.completed, account) then
    call('HDEL', keys.accounts, name)
    call('ZREM', keys.accountList, name)
    call('ZREM', keys.retention, account .. '/' .. name)
    completedIn[account] = nil
    retention:forget(account .. '/' .. name)
  end
end

-- Remembers the id of an event that is deleted, until it may be used again.
function rememberEvent(event, name, stored)
  if stored.rememberUntil <= now then return end
  local value =
    table.concat({ text(stored.rememberUntil), stored.nonce, stored.receivers, stored.digest }, '\n')
  remember('e/' .. event .. '/' .. name, value, stored.rememberUntil)
end

-- Deletes the records of a webhook. Its deliveries stay, and its line among the subscriptions.
function deleteWebhook(webhook)
  local endpoint = endpoints:get(webhook)
  local id = endpoint and string.match(getConfig(endpoint) or '', '"id":"([^"]*)"')
  call('HDEL', keys.rates, webhook)
  if id then call('HDEL', keys.ids, id) end
  if endpoint then setFailingSince(webhook, endpoint, '') end
  endpoints:delete(webhook)
  inFlight:delete(webhook)
  webhookCounts:delete(webhook)
  webhookCounts:delete(webhook .. '/h')
  call('ZREM', keys.readyFast, webhook)
  call('ZREM', keys.readySlow, webhook)
  call('ZREM', keys.healthNotifications, webhook)
end

-- Deletes a webhook of an account, so that other functions no longer see it. Its deliveries stay.
function removeWebhook(name, webhook)
  changeSubscription(name, webhook, function() return nil end)
  deleteWebhook(webhook)
end

-- Deletes a delivery in any state. Returns it; nil if it does not exist. The caller counts an open one
-- as completed or gone.
function deleteDelivery(account, ref)
  local webhook, d = webhookOf(ref), getDelivery(account, ref)
  if not d then return nil end
  if d.isBroken then
    -- Its place is unknown. `check()` finds what is left of it.
    leases:remove(ref)
  elseif d.state == 'p' then
    queue:remove(queueMember(account, ref, d))
  elseif d.state == 'l' then
    leases:remove(ref)
    if endpoints:get(webhook) then changeInFlight(webhook, -1) end
  end
  if not isOpen(d) then
    metaAdded.completed = metaAdded.completed - 1
    countDelivery(webhook, d, -1)
  elseif endpoints:get(webhook) then
    touched[webhook] = true
  end
  deliveries:delete(ref)
  return d
end

-- Deletes what belongs to an event apart from its deliveries.
function deleteRecord(account, event)
  local key, p, stored = account .. '/' .. event, getProgress(account, event), getEvent(account, event)
  if p.completedAt ~= '' then
    completed:remove(completedMember(account, event, p))
    count(account, 'completed', -1)
  end
  progress:delete(key)
  call('HDEL', keys.events, key)
  events[key] = false
  if not stored then return end
  forEachKey(account, stored.order, event, stored.label, keyIndex.remove)
  metaAdded.bytes = metaAdded.bytes - stored.bytes
end

-- Deletes an event with its deliveries in any state. Returns how many deliveries it had, and how many of
-- them were created later: an event may have a hundred of those to each webhook.
function deleteEvent(account, event)
  local stored, p, refs, all = getEvent(account, event), getProgress(account, event), {}, 0
  -- Without its record the entry of the log cannot be found. `check()` removes that entry.
  local entry = stored and firstBelow(keys.log, account .. '/' .. stored.order)
  for webhook in string.gmatch(entry and string.match(entry, '[^/]*$') or '', '(%d+)%.?0?') do
    refs[#refs + 1] = webhook .. '/' .. event
  end
  if entry then log:remove(entry) end
  local first = #refs
  for webhook, serial in string.gmatch(p.later, '(%d+)%.(%d+)') do
    refs[#refs + 1] = toRef(webhook, event, serial)
  end
  deliveries:fetch(refs)
  for i, ref in ipairs(refs) do
    local d = deliveries:get(ref)
    local later = i > first and d and d.order ~= '' and firstBelow(keys.log, account .. '/' .. d.order)
    if later then log:remove(later) end
    -- Of a completed event, a delivery without a record was that of a removed webhook.
    d = (d or p.open > 0) and deleteDelivery(account, ref)
    if d then all = all + 1 end
    if d and isOpen(d) then count(account, 'pending', -1) end
  end
  deleteRecord(account, event)
  return all, #refs - first
end

-- Frees a completed event. Returns what this costs against a bound.
local function freeEvent(account, name, event)
  local stored = getEvent(account, event)
  local _, later = deleteEvent(account, event)
  if stored then rememberEvent(event, name, stored) end
  return 1 + later
end

-- Frees the oldest completed events of accounts that have too many.
local function freeExcess()
  completed:flush()
  for account, name in pairs(completedIn) do
    local excess, cost = countExcess(account), 0
    if excess > 0 then
      for _, member in ipairs(listBelow(keys.completed, account, '', math.min(excess, FREED_OF_ACCOUNT))) do
        cost = cost + freeEvent(account, name, string.match(member, '[^/]+$'))
        if cost >= FREED_OF_ACCOUNT then break end
      end
    end
  end
end

-- Describes the removal of a webhook for `cleanRemoved`. Deliveries of a webhook are not older than the
-- webhook. The minute allows for clocks that differ. `endpoint`: nil if it cannot be read.
function describeRemoval(account, name, endpoint)
  local createdAt = endpoint and tonumber(string.match(getConfig(endpoint) or '', '"createdAt":(%d+)') or 0)
  return account .. ',' .. name .. ',' .. (createdAt and hex(createdAt - 60000) or '')
end

-- Frees one page of the deliveries of a removed webhook. A later call continues after `order`.
function cleanRemoved(webhook, removal)
  local account, name, order = string.match(removal, '^(%d+),([^,]*),(%x*)$')
  if not account then
    call('HDEL', keys.removals, webhook)
    return
  end
  local entries = listBelow(keys.log, account, order, CLEANED_PER_CALL)
  for _, entry in ipairs(entries) do
    local at, event, _, receivers = readEntry(entry)
    order = at or order
    for number, dot, serial in string.gmatch(receivers or '', '(%d+)(%.?)(%d*)') do
      if number == webhook then
        local d = deleteDelivery(account, toRef(webhook, event, serial))
        if d and isOpen(d) then closeDelivery(account, name, event) end
        if dot ~= '' then log:remove(entry) end
      end
    end
  end
  freeExcess()
  log:flush()
  completed:flush()
  if #entries == CLEANED_PER_CALL then
    call('HSET', keys.removals, webhook, account .. ',' .. name .. ',' .. order)
  else
    call('HDEL', keys.removals, webhook)
    deleteIfEmpty(account, name)
  end
end

-- Frees the events in a range of completed ones, the first first, whose time is over, until they cost
-- `limit`, but at least one event. `findEnd` returns when the event of a place is to be freed. Returns
-- their cost, and when the next one of the range is to be freed: nil without a next one.
local function freeRange(member, range, limit, findEnd)
  local account, name = string.match(member, '^(%d+)/(.*)$')
  local cost = 0
  for _, entry in ipairs(call('ZRANGEBYLEX', keys.completed, range.from, range.to, 'LIMIT', 0, limit + 1)) do
    local place, event = string.match(entry, '^%d+/(%x+)/(.+)$')
    local freeAt = place and findEnd(tonumber(place, 16)) or 0
    if cost >= limit or freeAt > now then return cost, freeAt end
    cost = cost + (event and freeEvent(account, name, event) or 1)
    completed:remove(entry)
  end
  return cost
end

-- Frees events of an account whose time is over, until they cost about `limit`. Returns their cost.
local function freeExpired(member, limit)
  local account, name = string.match(member, '^(%d+)/(.*)$')
  if not account then
    call('ZREM', keys.retention, member)
    return 0
  end
  local keptFrom, to = keptIn(account)
  local plain = { from = '[' .. account .. '/', to = '(' .. account .. '/' .. hex(KEPT_FROM) }
  local cost, nextAt = freeRange(member, plain, limit, function(place) return place + options.retentionMs end)
  local kept = { from = keptFrom, to = to }
  local keptCost, keptAt = freeRange(member, kept, math.max(1, limit - cost), function(place)
    return place - KEPT_FROM
  end)
  log:flush()
  completed:flush()
  if keptAt and isEarlier(keptAt, nextAt) then nextAt = keptAt end
  if nextAt then
    call('ZADD', keys.retention, text(nextAt), member)
  else
    call('ZREM', keys.retention, member)
    deleteIfEmpty(account, name)
  end
  return cost + keptCost
end

local function endLease(ref, webhook)
  leases:remove(ref)
  changeInFlight(webhook, -1)
  touched[webhook] = true
end

-- Completes a leased delivery as failed, because its record cannot be read. So it does not hold up the
-- rest. The caller logs an error for those in `failed`.
local function fail(failed, ref, endpoint, reason)
  failed[#failed + 1] = ref
  local d = deliveries:get(ref)
  if not d or d.isBroken then d = newDelivery('') end
  d.state = 'p'
  completeDelivery(endpoint, ref, d, 'f', reason)
end

-- Why the delivery of a reference cannot be attempted. Nil if its event can be read.
local function findDefect(endpoint, ref)
  local event = eventOf(ref)
  if not event then return 'record_unreadable' end
  if getEvent(endpoint.accountNumber, event) then return nil end
  local isStored = call('HEXISTS', keys.events, endpoint.accountNumber .. '/' .. event) == 1
  return isStored and 'payload_unreadable' or 'payload_missing'
end

-- Recovers a delivery whose lease has expired.
local function recoverLeased(failed, ref)
  local webhook = webhookOf(ref)
  local endpoint, d = webhook and endpoints:get(webhook), deliveries:get(ref)
  if not endpoint or not eventOf(ref) then
    leases:remove(ref)
    return
  end
  endLease(ref, webhook)
  if d and not d.isBroken and not isOpen(d) then return end
  local defect = d and d.isBroken and 'record_unreadable' or findDefect(endpoint, ref)
  d = not defect and getDelivery(endpoint.accountNumber, ref)
  if not d then
    fail(failed, ref, endpoint, defect or 'record_unreadable')
  elseif d.state == 'l' then
    d.crashes, d.recovered, d.token = text((tonumber(d.crashes) or 0) + 1), '1', ''
    enqueue(endpoint.accountNumber, ref, d)
  end
end

-- Recovers deliveries whose lease has expired, fails deliveries that cannot be read, and frees data
-- whose retention is over or that an account has too much of. Each call frees a bounded part.
--
-- Options: accounts that have too many completed events, as `A/account`, and unreadable: leased
-- references whose events cannot be read.
--
-- Replies with the deliveries that were failed, the name of the data set, and the accounts that still
-- have too many events.
define('tidy', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  checkAllTypes()
  local failed = {}
  for _, ref in ipairs(options.unreadable or {}) do
    local webhook = webhookOf(ref)
    local endpoint = webhook and endpoints:get(webhook)
    if endpoint and call('ZSCORE', keys.leases, ref) then
      endLease(ref, webhook)
      fail(failed, ref, endpoint, findDefect(endpoint, ref) or 'payload_unreadable')
    end
  end
  local expired = call('ZRANGEBYSCORE', keys.leases, '-inf', nowText, 'LIMIT', 0, RECOVERED_PER_CALL)
  deliveries:fetch(expired)
  for _, ref in ipairs(expired) do recoverLeased(failed, ref) end

  local left = FREED_PER_CALL
  for _, member in ipairs(call('ZRANGEBYSCORE', keys.retention, '-inf', nowText, 'LIMIT', 0, 20)) do
    if left > 0 then left = left - freeExpired(member, left) end
  end
  forgetExpired(FREED_PER_CALL)
  local removed = call('HRANDFIELD', keys.removals, 1, 'WITHVALUES')
  if removed[1] then cleanRemoved(removed[1], removed[2]) end
  for _, name in ipairs(options.accounts or {}) do
    local account, of = string.match(name, '^(%d+)/(.*)$')
    if account then completedIn[account] = of end
  end
  freeExcess()
  local excess = listExcess()
  flush()
  return { failed, meta:text('dataSet') or '', excess }
end)
