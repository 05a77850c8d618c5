-- Deliveries: how their records are read and written, and how one enters the queue.
--
-- A reference names a delivery: `<webhook>/<event>` or `<webhook>/<event>.<serial>`. A delivery
-- that was never claimed may have no record of its own: then the log and the queue alone hold it.

local DELIVERY =
  '^(%a),(%x+),(%d*),(%d+),(%d+),(%d*),(%d+),(%d+),(%d*),(%d),([^,]*),(%d+),(%d+),(%d+),([^,]*)(.*)$'

-- The two short forms hold only what differs from a new delivery of their event.
local LEASED_FIRST, DELIVERED_FIRST = '^l:([^,]*)(.*)$', '^d:([^,]*),(%d+),(%d+),(%d+),(%d+),(%d+)(.*)$'

local function readShortDelivery(value)
  local token, leasedMore = string.match(value, LEASED_FIRST)
  if token then return { isShort = true, state = 'l', token = token, more = leasedMore } end
  local nonce, at, startedBefore, endedAfter, durationMs, status, more = string.match(value, DELIVERED_FIRST)
  if not nonce then return nil end
  return {
    isShort = true, state = 'd', token = nonce, seenAt = tonumber(at), startedBefore = tonumber(startedBefore),
    endedAfter = tonumber(endedAfter), durationMs = durationMs, status = status, more = more,
  }
end

local function readDelivery(value)
  if string.sub(value, 2, 2) == ':' then
    local short = readShortDelivery(value)
    if short then return short end
  end
  local line, attempts = firstLine(value)
  local state, order, startedAt, step, dueAt, endedAt, postponed, crashes, extraAt, recovered, token, at, receivers, tries, reason, more =
    string.match(line, DELIVERY)
  if not state then return { isBroken = true } end
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
    d.at, d.receivers, d.tries, d.reason,
  }, ',') .. d.more
end

local deliveries = records(DELIVERIES, readDelivery, function(d) return deliveryLine(d) .. d.attempts end)

-- A delivery between its creation and its first claim. Its order contains the time of its creation.
local function freshDelivery(order, receivers)
  local createdAt = tonumber(string.sub(order, 1, 11), 16)
  return {
    state = 'p', order = order, startedAt = '', step = '0', dueAt = text(createdAt), endedAt = '', postponed = '0',
    crashes = '0', extraAt = '', recovered = '0', token = '', at = math.max(0, findQueueTime(nil, createdAt, nil, createdAt)),
    receivers = receivers, tries = 0, reason = '', more = '', attempts = '',
  }
end

-- Expands a delivery of a short form, so that the general scripts can work with it.
local function expand(d, order, receivers)
  if not d.isShort then return d end
  local all = freshDelivery(order, receivers)
  all.state, all.token, all.more = d.state, d.token, d.more
  if d.state == 'd' then
    all.startedAt, all.endedAt, all.tries = text(d.seenAt - d.startedBefore), text(d.seenAt + d.endedAfter), 1
    all.attempts = '\n{"at":' .. text(d.seenAt) .. ',"durationMs":' .. d.durationMs .. ',"step":0,"isExtra":false,"kind":"delivered","status":'
      .. d.status .. ',"code":"HTTP_' .. d.status .. '","excerpt":null}'
  end
  return all
end

local function isDone(d) return d.state == 'd' or d.state == 'w' end
local function isOpen(d) return d.state == 'p' or d.state == 'l' end

-- Nil if `ref` is no reference.
local function webhookOf(ref) return string.match(ref, '^(%d+)/') end
local function suffixOf(ref) return string.match(ref, '/(.+)$') end
local function eventOf(ref) return string.match(ref, '/([^.]+)') end
local function queueMember(ref, at) return webhookOf(ref) .. '/' .. hex(at) .. '/' .. suffixOf(ref) end

-- Adds a pending delivery to the queue of its endpoint.
local function enqueue(ref, d)
  local at = math.max(0, findQueueTime(tonumber(d.startedAt), tonumber(d.dueAt), tonumber(d.extraAt), now))
  d.state, d.at = 'p', at
  queue.add(queueMember(ref, at), 0)
  deliveries.set(ref, d)
  touched[webhookOf(ref)] = true
end
