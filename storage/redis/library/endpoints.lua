-- Endpoints: the status, health, lane and slow start of a webhook, and when it may be served next.

local endpoints = hash('webhooks', function(value)
  local number, account, status, generation, updatedAt, failingSince, warnedAt, noticeAt, lane, slowStart,
    perSecond, restAt =
    string.match(value, '^(%d+),([^,]*),(%a),(%d+),(%d+),(%d*),(%d*),(%d*),([fs]),(%d*),(%d*)()')
  return number and {
    accountNumber = number, account = account, status = status, generation = generation,
    updatedAt = updatedAt, failingSince = failingSince, warnedAt = warnedAt, noticeAt = noticeAt, lane = lane,
    slowStart = slowStart, perSecond = perSecond, stored = value, restAt = restAt,
  }
end, function(e)
  return table.concat({
    e.accountNumber, e.account, e.status, e.generation, e.updatedAt, e.failingSince, e.warnedAt, e.noticeAt,
    e.lane, e.slowStart, e.perSecond,
  }, ',') .. string.sub(e.stored, e.restAt)
end)

local function getConfig(endpoint) return string.match(endpoint.stored, '^[^\n]*\n(.*)$') end

-- Returns the number and the endpoint of a webhook; nil if the account has no such webhook.
local function findEndpoint(account, id)
  local webhook = call('HGET', keys.ids, id)
  local endpoint = webhook and endpoints:get(webhook)
  if endpoint and endpoint.account == account then return webhook, endpoint end
end

local health = sortedSet('healthNotifications')

local function setNoticeAt(webhook, endpoint, at)
  endpoint.noticeAt = at
  endpoints:set(webhook, endpoint)
  if at == '' then health:remove(webhook) else health:add(webhook, at) end
end

-- The failing endpoints, in the order in which they began to fail.
local failing = sortedSet('failing')

local function failingMember(webhook, failingSince) return hex(tonumber(failingSince)) .. '/' .. webhook end

-- Sets since when an endpoint fails; empty if it does not.
local function setFailingSince(webhook, endpoint, failingSince)
  if endpoint.failingSince == failingSince then return end
  if endpoint.failingSince ~= '' then failing:remove(failingMember(webhook, endpoint.failingSince)) end
  if failingSince ~= '' then failing:add(failingMember(webhook, failingSince), 0) end
  endpoint.failingSince = failingSince
  endpoints:set(webhook, endpoint)
end

local ready = { f = sortedSet('readyFast'), s = sortedSet('readySlow') }

local function moveToLane(webhook, endpoint, lane)
  if endpoint.lane == lane then return end
  ready[endpoint.lane]:remove(webhook)
  endpoint.lane = lane
  endpoints:set(webhook, endpoint)
end

local inFlight = hash('inFlight', function(value) return tonumber(value) end, text)

local function changeInFlight(webhook, by)
  local count = (inFlight:get(webhook) or 0) + by
  if count > 0 then inFlight:set(webhook, count) else inFlight:delete(webhook) end
end

local function freeSlots(webhook, endpoint)
  return countFreeSlots(tonumber(endpoint.slowStart), inFlight:get(webhook) or 0, perEndpoint)
end

-- How many deliveries of an endpoint may be claimed in a second: its own limit, or that of all. Nil
-- for any number.
local function getPerSecond(endpoint) return tonumber(endpoint.perSecond) or perSecond end

-- How many deliveries of an endpoint were claimed in a second. Neither read nor written without a
-- limit.
local rates = hash('rates', function(value)
  local second, count = string.match(value, '^(%d+),(%d+)$')
  return second and { second = tonumber(second), count = tonumber(count) }
end, function(rate) return text(rate.second) .. ',' .. text(rate.count) end)

local function getRate(webhook, endpoint) return getPerSecond(endpoint) and rates:get(webhook) end

-- Reads all that claims and offers need of endpoints.
local function fetchEndpoints(webhooks)
  endpoints:fetch(webhooks)
  inFlight:fetch(webhooks)
  if perSecond then rates:fetch(webhooks) end
end

-- The earliest time at which this call made something due: sleeping workers are notified of it.
local notifyAt

local function notifyWorkers(at)
  if isEarlier(at, notifyAt) then notifyAt = at end
end

-- Endpoints whose queue or free slots this call has changed.
local touched

-- The time in a member of the queue. Nil if something else put the member there.
local function readQueueTime(member) return tonumber(string.match(member, '^%d+/(%x+)/') or '', 16) end

-- Works out when an endpoint may be served next. `readyAt`: what is stored.
local function offer(webhook, endpoint, readyAt)
  local free = freeSlots(webhook, endpoint)
  local head = free > 0 and firstBelow(keys.queue, webhook)
  local openTime = findOpenTime(getPerSecond(endpoint), getRate(webhook, endpoint), now)
  local at = findReadyTime(head and (readQueueTime(head) or 0), free, openTime)
  if at then
    if isEarlier(at, readyAt) then notifyWorkers(at) end
    call('ZADD', keys[READY[endpoint.lane]], text(at), webhook)
  elseif readyAt then
    call('ZREM', keys[READY[endpoint.lane]], webhook)
  end
end

local function offerTouched()
  local webhooks, moved, readyTimes = {}, {}, {}
  for webhook in pairs(touched) do webhooks[#webhooks + 1] = webhook end
  touched = {}
  for from = 1, #webhooks, MAX_ARGUMENTS do
    local page = { unpack(webhooks, from, math.min(from + MAX_ARGUMENTS - 1, #webhooks)) }
    local fast, slow =
      call('ZMSCORE', keys.readyFast, unpack(page)), call('ZMSCORE', keys.readySlow, unpack(page))
    for i, webhook in ipairs(page) do
      -- A score has a fraction for the turn.
      local score = tonumber(fast[i] or slow[i] or nil)
      readyTimes[webhook] = score and math.floor(score)
      if not keepsTurn(readyTimes[webhook], now) then moved[#moved + 1] = webhook end
    end
  end
  fetchEndpoints(moved)
  for _, webhook in ipairs(moved) do
    local endpoint = endpoints:get(webhook)
    if endpoint then offer(webhook, endpoint, readyTimes[webhook]) end
  end
end

local OFFERED = { 'readyFast', 'readySlow', 'queue' }

-- Fails before the first write if a key that `flush` changes or needs has another type.
local function checkBuffers()
  for i = 1, #buffers do buffers[i]:check() end
  if not next(touched) then return end
  checkTypes(OFFERED)
  for _, buffer in ipairs({ endpoints, inFlight, rates }) do
    if not buffer.isRead then call('HLEN', keys[buffer.key]) end
  end
end

-- Writes all that the buffers hold. Every function that changes something ends with it.
local function flush()
  addToMeta()
  checkBuffers()
  for i = 1, #buffers do buffers[i]:flush() end
  offerTouched()
end
