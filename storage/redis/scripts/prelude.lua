-- What every script starts with: the keys of its partition, and how endpoints, deliveries and events are read and written.
-- docs/redis.md draws the keys and the texts. KEYS is the same list for all scripts (keys.ts); nothing here builds the name of a key.

local META, ACCOUNTS, IDS, WEBHOOKS, IN_FLIGHT = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local QUEUE, FAST, SLOW, LEASES, NOTICES = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local EVENTS, PROGRESS, DELIVERIES, LOG, ENDED = KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local FREEING, REMEMBERED, FORGETTING, REMOVALS, PENDING = KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20]

local call = redis.call
local READY = { f = FAST, s = SLOW }

local now = tonumber(ARGV[1])
-- How many deliveries of an endpoint may be under lease, and how long and how many ended events of an account are kept.
local perEndpoint, keepMs, keepEvents = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local HEAD_START_MS = 3600000
local MAX_ATTEMPTS_KEPT = 50

-- Numbers above 1e14 would lose digits in Lua's own conversion.
local function text(number) return string.format('%.0f', number) end
-- Times sort as texts.
local function hex(at) return string.format('%011x', math.max(0, at)) end

-- The line up to the first line feed, and the rest with it.
local function firstLine(value)
  local feed = string.find(value, '\n', 1, true)
  if not feed then return value, '' end
  return string.sub(value, 1, feed - 1), string.sub(value, feed)
end

-- Members that begin with `prefix` and a slash: '0' is the character after it.
local function below(prefix) return '[' .. prefix .. '/', '(' .. prefix .. '0' end

-- The first write of a script that must go on where Redis is full has to be one that a full Redis accepts.
local function goOnWhenFull() call('HDEL', META, '-') end

-- Endpoints -----------------------------------------------------------------------------------------------------------

local ENDPOINT = '^(%d+),([^,]*),(%a),(%d+),(%d+),(%d*),(%d*),(%d*),(%a),(%d*)(.*)$'
local endpoints = {}

local function readEndpoint(value)
  local line, config = firstLine(value)
  local a, account, status, generation, updatedAt, failingSince, warnedAt, noticeAt, lane, window, more =
    string.match(line, ENDPOINT)
  if not a then return nil end
  return {
    a = a, account = account, status = status, generation = generation, updatedAt = updatedAt,
    failingSince = failingSince, warnedAt = warnedAt, noticeAt = noticeAt, lane = lane, window = window,
    more = more, config = config,
  }
end

-- Read once in a script; `save` writes back what has changed. False where there is none (any more).
local function endpoint(w)
  local known = endpoints[w]
  if known ~= nil then return known end
  local value = call('HGET', WEBHOOKS, w)
  local e = value and readEndpoint(value) or false
  if e then e.inFlight = tonumber(call('HGET', IN_FLIGHT, w) or 0) end
  endpoints[w] = e
  return e
end

local function endpointText(e)
  return table.concat({
    e.a, e.account, e.status, e.generation, e.updatedAt, e.failingSince, e.warnedAt, e.noticeAt, e.lane, e.window,
  }, ',') .. e.more .. e.config
end

local function setNotice(w, e, at)
  e.noticeAt = at
  e.isChanged = true
  if at == '' then call('ZREM', NOTICES, w) else call('ZADD', NOTICES, at, w) end
end

local function clearHealth(w, e)
  e.failingSince, e.warnedAt = '', ''
  setNotice(w, e, '')
end

local function lease(e, by)
  e.inFlight = e.inFlight + by
  e.isCountChanged = true
end

local function moveToLane(w, e, lane)
  if e.lane == lane then return end
  call('ZREM', READY[e.lane], w)
  e.lane = lane
  e.isChanged = true
end

-- The time of a change that users see: later than the one before, also within one millisecond.
local function touch(e)
  e.updatedAt = text(math.max(now, tonumber(e.updatedAt) + 1))
  e.isChanged = true
end

-- Whose turn it is ----------------------------------------------------------------------------------------------------

-- Endpoints that are due stand in the order of their scores; who was just served goes behind the others by a fraction of a millisecond.
local TURN_MS, LAST_TURN_MS = 1 / 4096, 0.999
local turn

local function nextTurn()
  turn = turn or tonumber(call('HGET', META, 'turn') or 0)
  turn = math.min(math.max(now, turn) + TURN_MS, now + LAST_TURN_MS)
  call('HSET', META, 'turn', string.format('%.17g', turn))
  return turn
end

local function freeSlots(e)
  local most = perEndpoint
  if e.window ~= '' then most = math.min(most, tonumber(e.window)) end
  return most - e.inFlight
end

local function queueHead(w)
  local from, to = below(w)
  return call('ZRANGEBYLEX', QUEUE, from, to, 'LIMIT', 0, 1)[1]
end

local function timeOf(member) return tonumber(string.match(member, '^%d+/(%x+)/'), 16) end

-- The earliest time that something became due at in this script: what sleepers have to know.
local hintAt

local function hint(at)
  if not hintAt or at < hintAt then hintAt = at end
end

-- Says when an endpoint may be served next, after anything about it has changed. One that is due already keeps its place in the line.
local function offer(w, e)
  local line = READY[e.lane]
  local head = queueHead(w)
  if not head or freeSlots(e) <= 0 then
    call('ZREM', line, w)
    return
  end
  local headAt = timeOf(head)
  local at = math.max(headAt, now)
  local standing = tonumber(call('ZSCORE', line, w) or nil)
  if not standing or standing >= now + 1 or headAt > now then call('ZADD', line, text(at), w) end
  if not standing or at < standing then hint(at) end
end

-- Deliveries ----------------------------------------------------------------------------------------------------------
-- A reference is `<webhook>/<event>` or `<webhook>/<event>.<serial>`. One that was never claimed may have no record of its own: it is in the log and in the queue.

local DELIVERY =
  '^(%a),(%x+),(%d*),(%d+),(%d+),(%d*),(%d+),(%d+),(%d*),(%d),([^,]*),(%d+),(%d+),(%d+),([^,]*)(.*)$'

local function readDelivery(value)
  local line, attempts = firstLine(value)
  local state, order, startedAt, step, dueAt, endedAt, postponed, crashes, extraAt, recovered, token, at, receivers, tries, reason, more =
    string.match(line, DELIVERY)
  if not state then return nil end
  return {
    state = state, order = order, startedAt = startedAt, step = step, dueAt = dueAt, endedAt = endedAt,
    postponed = postponed, crashes = crashes, extraAt = extraAt, recovered = recovered, token = token,
    at = tonumber(at), receivers = tonumber(receivers), tries = tonumber(tries), reason = reason, more = more,
    attempts = attempts,
  }
end

local function deliveryLine(d)
  return table.concat({
    d.state, d.order, d.startedAt, d.step, d.dueAt, d.endedAt, d.postponed, d.crashes, d.extraAt, d.recovered, d.token,
    text(d.at), text(d.receivers), text(d.tries), d.reason,
  }, ',') .. d.more
end

local function save(ref, d) call('HSET', DELIVERIES, ref, deliveryLine(d) .. d.attempts) end

-- As it is from its making until its first claim. The time it was made at is part of its order.
local function freshDelivery(order, receivers)
  local createdAt = tonumber(string.sub(order, 1, 11), 16)
  return {
    state = 'p', order = order, startedAt = '', step = '0', dueAt = text(createdAt), endedAt = '', postponed = '0',
    crashes = '0', extraAt = '', recovered = '0', token = '', at = math.max(0, createdAt - HEAD_START_MS),
    receivers = receivers, tries = 0, reason = '', more = '', attempts = '',
  }
end

local function isDone(d) return d.state == 'd' or d.state == 'w' end
local function isOpen(d) return d.state == 'p' or d.state == 'l' end

local function webhookOf(ref) return string.match(ref, '^%d+') end
local function suffixOf(ref) return string.match(ref, '/(.+)$') end
local function eventOf(ref) return string.match(ref, '/([^.]+)') end
local function queueMember(ref, at) return webhookOf(ref) .. '/' .. hex(at) .. '/' .. suffixOf(ref) end

-- Puts a pending delivery in its endpoint's queue. Only what is due already gets the head start of a first attempt, or it would come early.
local function enqueue(ref, d)
  local at = tonumber(d.extraAt) or tonumber(d.dueAt)
  if d.startedAt == '' and at <= now then at = math.max(0, at - HEAD_START_MS) end
  d.state, d.at = 'p', at
  call('ZADD', QUEUE, 0, queueMember(ref, at))
end

-- Events --------------------------------------------------------------------------------------------------------------

local EVENT = '^(%x+),(%d+),(%d+),([^,]*),([^,\n]*)'

-- The head of a stored event: its order, how many deliveries it was made with, until when its id is remembered, who stored it, and the webhooks it went to.
local function readEvent(value)
  local order, count, rememberUntil, nonce, receivers = string.match(value, EVENT)
  if not order then return nil end
  local lineEnd = string.find(value, '\n', 1, true)
  local digestEnd = string.find(value, '\n', lineEnd + 1, true)
  return {
    order = order, count = tonumber(count), rememberUntil = tonumber(rememberUntil), nonce = nonce, receivers = receivers,
    digest = string.sub(value, lineEnd + 1, digestEnd - 1),
    type = string.sub(value, digestEnd + 1, string.find(value, '\n', digestEnd + 1, true) - 1),
  }
end

local function storedEvent(a, ek)
  local value = call('HGET', EVENTS, a .. '/' .. ek)
  return value and readEvent(value)
end

-- Orders grow with each event and later delivery of the partition: 11 digits of the time, 4 that count within it.
local lastOrder

local function nextOrder()
  lastOrder = lastOrder or call('HGET', META, 'order') or ''
  local order = hex(now) .. '0000'
  if order <= lastOrder then
    local at, count = tonumber(string.sub(lastOrder, 1, 11), 16), tonumber(string.sub(lastOrder, 12), 16) + 1
    if count > 65535 then at, count = at + 1, 0 end
    order = hex(at) .. string.format('%04x', count)
  end
  lastOrder = order
  return order
end

-- A delivery as it is now, and nil where there is none.
local function delivery(a, ref)
  local value = call('HGET', DELIVERIES, ref)
  if value then return readDelivery(value) end
  if string.find(ref, '.', 1, true) then return nil end
  local event = storedEvent(a, eventOf(ref))
  if not event then return nil end
  local entry = call('ZRANGEBYLEX', LOG, '[' .. a .. '/' .. event.order .. '/', '(' .. a .. '/' .. event.order .. '0', 'LIMIT', 0, 1)[1]
  local receivers = entry and ';' .. string.match(entry, '[^/]*$') .. ';'
  if not receivers or not string.find(receivers, ';' .. webhookOf(ref) .. ';', 1, true) then return nil end
  return freshDelivery(event.order, event.count)
end

local pendingChanges, endedChange, byteChange = {}, 0, 0

local function countPending(a, by) pendingChanges[a] = (pendingChanges[a] or 0) + by end

-- Writes what the parts above have kept in mind. Every script that changes something ends with it.
local function flush()
  for w, e in pairs(endpoints) do
    if e then
      if e.isTouched then offer(w, e) end
      if e.isChanged then call('HSET', WEBHOOKS, w, endpointText(e)) end
      if e.isCountChanged then
        if e.inFlight > 0 then call('HSET', IN_FLIGHT, w, e.inFlight) else call('HDEL', IN_FLIGHT, w) end
      end
    end
  end
  for a, by in pairs(pendingChanges) do
    if by ~= 0 and call('HINCRBY', PENDING, a, by) <= 0 then call('HDEL', PENDING, a) end
  end
  if endedChange ~= 0 then call('HINCRBY', META, 'ended', endedChange) end
  if byteChange ~= 0 then call('HINCRBY', META, 'bytes', text(byteChange)) end
  if lastOrder then call('HSET', META, 'order', lastOrder) end
end
