-- Freeing, page by page, what has expired and what removed webhooks held.

-- The most completed events of an account that one call frees, and entries of the log that it reads
-- for a removed webhook.
local FREED_OF_ACCOUNT, CLEANED_PER_CALL = 100, 100
-- The most completed events that one call frees because their retention is over.
local FREED_PER_CALL = 200

-- Deletes an account that has neither webhooks nor events.
local function deleteIfEmpty(account, name)
  if call('HGET', ACCOUNTS, name) == account .. '\n' and not firstBelow(LOG, account) and not firstBelow(COMPLETED, account) then
    call('HDEL', ACCOUNTS, name)
    call('ZREM', ACCOUNT_LIST, name)
    call('ZREM', RETENTION, account .. '/' .. name)
    completedIn[account] = nil
    retention:forget(account .. '/' .. name)
  end
end

-- Remembers the id of an event that is deleted.
local function rememberEvent(event, name, stored)
  local value = table.concat({ text(stored.rememberUntil), stored.nonce, stored.receivers, stored.digest }, '\n')
  remember('e/' .. event .. '/' .. name, value, stored.rememberUntil)
end

-- Deletes a webhook of an account, so that other scripts no longer see it. Its deliveries stay.
local function removeWebhook(name, webhook)
  local endpoint = endpoints:get(webhook)
  local id = endpoint and string.match(getConfig(endpoint) or '', '"id":"([^"]*)"')
  call('HDEL', RATES, webhook)
  changeSubscription(name, webhook, function() return nil end)
  if id then call('HDEL', IDS, id) end
  if endpoint then setFailingSince(webhook, endpoint, '') end
  endpoints:delete(webhook)
  inFlight:delete(webhook)
  webhookCounts:delete(webhook)
  webhookCounts:delete(webhook .. '/h')
  call('ZREM', READY.f, webhook)
  call('ZREM', READY.s, webhook)
  call('ZREM', HEALTH, webhook)
end

local function freeDelivery(ref)
  local d = deliveries:get(ref)
  if not d then return nil end
  deliveries:delete(ref)
  metaAdded.completed = metaAdded.completed - 1
  countDelivery(webhookOf(ref), d, -1)
  return d
end

-- Frees an event without open deliveries: its deliveries, its entries of the log, and the event
-- itself. Returns what this costs against a bound: 1, and 1 for each later delivery. An event may
-- have a hundred later deliveries to each webhook.
local function freeEvent(account, name, event)
  local key = account .. '/' .. event
  local stored, p = getEvent(account, event), getProgress(account, event)
  -- Without its record the entry of the log cannot be found. `check()` removes that entry.
  local entry = stored and firstBelow(LOG, account .. '/' .. stored.order)
  if entry then
    for webhook in string.gmatch(string.match(entry, '[^/]*$'), '%d+') do freeDelivery(webhook .. '/' .. event) end
    log:remove(entry)
  end
  local cost = 1
  for webhook, serial in string.gmatch(p.later, '(%d+)%.(%d+)') do
    cost = cost + 1
    local d = freeDelivery(toRef(webhook, event, serial))
    local later = d and d.order and d.order ~= '' and firstBelow(LOG, account .. '/' .. d.order)
    if later then log:remove(later) end
  end
  if p.completedAt ~= '' then
    completed:remove(completedMember(account, event, p))
    count(account, 'completed', -1)
  end
  progress:delete(key)
  if not stored then return cost end
  forEachKey(account, stored.order, event, stored.label, keyIndex.remove)
  call('HDEL', EVENTS, key)
  events[key] = false
  metaAdded.bytes = metaAdded.bytes - stored.bytes
  if stored.rememberUntil > now then rememberEvent(event, name, stored) end
  return cost
end

-- Frees the oldest completed events of accounts that have too many.
local function freeExcess()
  completed:flush()
  for account, name in pairs(completedIn) do
    local excess, cost = countExcess(account), 0
    if excess > 0 then
      local from, to = below(account)
      for _, member in ipairs(call('ZRANGEBYLEX', COMPLETED, from, to, 'LIMIT', 0, math.min(excess, FREED_OF_ACCOUNT))) do
        cost = cost + freeEvent(account, name, string.match(member, '[^/]+$'))
        if cost >= FREED_OF_ACCOUNT then break end
      end
    end
  end
end

-- Deletes a delivery of a removed webhook.
local function forgetDelivery(account, name, ref)
  local d = getDelivery(account, ref)
  if not d then return end
  deliveries:delete(ref)
  if d.state == 'p' then queue:remove(queueMember(account, ref, d)) end
  if d.state == 'l' then leases:remove(ref) end
  if isOpen(d) then closeDelivery(account, name, eventOf(ref)) else metaAdded.completed = metaAdded.completed - 1 end
end

-- Describes the removal of a webhook for `cleanRemoved`. Deliveries of a webhook are not older than the
-- webhook. The minute allows for clocks that differ. `endpoint`: nil if it cannot be read.
local function describeRemoval(account, name, endpoint)
  local createdAt = endpoint and tonumber(string.match(getConfig(endpoint) or '', '"createdAt":(%d+)') or 0)
  return account .. ',' .. name .. ',' .. (createdAt and hex(createdAt - 60000) or '')
end

-- Frees one page of the deliveries of a removed webhook. A later call continues after `order`.
local function cleanRemoved(webhook, removal)
  local account, name, order = string.match(removal, '^(%d+),([^,]*),(%x*)$')
  if not account then
    call('HDEL', REMOVALS, webhook)
    return
  end
  local from, to = below(account)
  if order ~= '' then from = '[' .. account .. '/' .. order .. '0' end
  local entries = call('ZRANGEBYLEX', LOG, from, to, 'LIMIT', 0, CLEANED_PER_CALL)
  for _, entry in ipairs(entries) do
    local at, event, _, receivers = readEntry(entry)
    order = at or order
    for number, dot, serial in string.gmatch(receivers or '', '(%d+)(%.?)(%d*)') do
      if number == webhook then
        forgetDelivery(account, name, toRef(webhook, event, serial))
        if dot ~= '' then log:remove(entry) end
      end
    end
  end
  freeExcess()
  log:flush()
  completed:flush()
  if #entries == CLEANED_PER_CALL then
    call('HSET', REMOVALS, webhook, account .. ',' .. name .. ',' .. order)
  else
    call('HDEL', REMOVALS, webhook)
    deleteIfEmpty(account, name)
  end
end

-- Frees the events in a range of `COMPLETED`, the first first, whose time is over, until they cost
-- `limit`, but at least one event. `findEnd` returns when the event of a place is to be freed. Returns
-- their cost, and when the next one of the range is to be freed: nil without a next one.
local function freeRange(member, range, limit, findEnd)
  local account, name = string.match(member, '^(%d+)/(.*)$')
  local cost = 0
  for _, own in ipairs(call('ZRANGEBYLEX', COMPLETED, range.from, range.to, 'LIMIT', 0, limit + 1)) do
    local place, event = string.match(own, '^%d+/(%x+)/(.+)$')
    local freeAt = place and findEnd(tonumber(place, 16)) or 0
    if cost >= limit or freeAt > now then return cost, freeAt end
    cost = cost + (event and freeEvent(account, name, event) or 1)
    completed:remove(own)
  end
  return cost
end

-- Frees events of an account whose time is over, until they cost about `limit`. Returns their cost.
local function freeExpired(member, limit)
  local account, name = string.match(member, '^(%d+)/(.*)$')
  if not account then
    call('ZREM', RETENTION, member)
    return 0
  end
  local keptFrom, to = keptIn(account)
  local plain = { from = '[' .. account .. '/', to = '(' .. account .. '/' .. hex(KEPT_FROM) }
  local cost, nextAt = freeRange(member, plain, limit, function(place) return place + options.retentionMs end)
  local kept = { from = keptFrom, to = to }
  local keptCost, keptAt = freeRange(member, kept, math.max(1, limit - cost), function(place) return place - KEPT_FROM end)
  log:flush()
  completed:flush()
  if keptAt and isEarlier(keptAt, nextAt) then nextAt = keptAt end
  if nextAt then
    call('ZADD', RETENTION, text(nextAt), member)
  else
    call('ZREM', RETENTION, member)
    deleteIfEmpty(account, name)
  end
  return cost + keptCost
end
