-- Leasing what is due, endpoint by endpoint.

local REAPED_PER_CALL = 100

-- What cannot be read is taken out of the way of the rest; the caller raises the alarm.
local parked = {}

local function park(ref, w, e, d, reason)
  parked[#parked + 1] = ref
  if not d or d.isBroken then
    local event = storedEvent(e.a, eventOf(ref))
    d = event and freshDelivery(event.order, event.count) or freshDelivery(nextOrder(), 1)
  end
  d.state = 'p'
  endDelivery(e, ref, d, 'f', reason)
  touched[w] = true
end

-- Why a delivery cannot be made of a reference; nil where its event can be read.
local function unreadable(e, ref)
  local ek = eventOf(ref)
  if not ek then return 'record_unreadable' end
  if storedEvent(e.a, ek) then return nil end
  return call('HEXISTS', EVENTS, e.a .. '/' .. ek) == 1 and 'payload_unreadable' or 'payload_missing'
end

-- Ends a lease, and the delivery as failed.
local function parkLeased(ref, w, e, reason)
  leases.remove(ref)
  lease(w, -1)
  touched[w] = true
  local d = deliveries.get(ref)
  park(ref, w, e, d and not d.isBroken and not d.isShort and d or nil, reason)
end

local function reap()
  local refs = call('ZRANGEBYSCORE', LEASES, '-inf', text(now), 'LIMIT', 0, REAPED_PER_CALL)
  deliveries.fetch(refs)
  for _, ref in ipairs(refs) do
    local w = webhookOf(ref)
    local e, d = w and endpoints.get(w), deliveries.get(ref)
    local reason = e and (d and d.isBroken and 'record_unreadable' or unreadable(e, ref))
    if not e or not eventOf(ref) then
      leases.remove(ref)
    elseif d and not d.isBroken and not isOpen(d) then
      leases.remove(ref)
      lease(w, -1)
      touched[w] = true
    elseif reason or not d or not delivery(e.a, ref) then
      parkLeased(ref, w, e, reason or 'record_unreadable')
    else
      leases.remove(ref)
      lease(w, -1)
      touched[w] = true
      d = delivery(e.a, ref)
      if d.state == 'l' then
        d.crashes, d.recovered, d.token = text(tonumber(d.crashes) + 1), '1', ''
        enqueue(ref, d)
      end
    end
  end
end

local claims, webhooks, events = {}, {}, {}
local given = {}

local function give(ref, e, line)
  local w = webhookOf(ref)
  claims[#claims + 1] = { ref, e.lane, line }
  if not given[w] then
    given[w] = true
    webhooks[#webhooks + 1] = { w, endpointText(e) }
  end
end

local taken = {}

-- One turn of each endpoint that is due in a lane, as far as there is room; answers how much was taken.
local function turnOf(lane, left)
  local line = READY[lane]
  local ws = call('ZRANGEBYSCORE', line, '-inf', '(' .. text(now + 1), 'LIMIT', 0, left)
  if #ws == 0 then return 0 end
  endpoints.fetch(ws)
  inFlight.fetch(ws)
  local share = math.ceil(left / #ws)
  local queued, gone, placed = {}, {}, {}
  local sum = 0
  for _, w in ipairs(ws) do
    -- Who gets nothing keeps its place, and is among the first next time.
    if sum >= left then break end
    local e = endpoints.get(w)
    local most = e and math.max(0, math.min(left - sum, share, freeSlots(w, e))) or 0
    local from, to = below(w)
    local head
    local own = 0
    if not e then parked[#parked + 1] = w end
    for i, member in ipairs(e and call('ZRANGEBYLEX', QUEUE, from, to, 'LIMIT', 0, most + 1) or {}) do
      local at = timeOf(member)
      if at and (i > most or at > now) then
        head = at
        break
      end
      queued[#queued + 1] = member
      if at then
        own = own + 1
        taken[#taken + 1] = { w .. '/' .. string.match(member, '^%d+/%x+/(.+)$'), w, e }
      else
        parked[#parked + 1] = member
      end
    end
    sum = sum + own
    if own > 0 then lease(w, own) end
    if not e or not head or freeSlots(w, e) <= 0 then
      gone[#gone + 1] = w
    else
      placed[#placed + 1] = string.format('%.17g', head <= now and nextTurn() or head)
      placed[#placed + 1] = w
    end
  end
  callMany('ZREM', QUEUE, queued)
  callMany('ZREM', line, gone)
  callMany('ZADD', line, placed)
  return sum
end

-- `room` is how many to take at most from each lane. Answers: when to ask again, the claims as { reference, lane, line }, their webhooks as { webhook, text },
-- their events as { event, text }, what was parked, and the mark of this data set.
local function claimDue(token, leaseUntil, room)
  -- The same request once more, since its answer was lost: it gets what it leased, in the order it was due.
  local held = {}
  for _, ref in ipairs(call('ZRANGEBYSCORE', LEASES, leaseUntil, leaseUntil, 'LIMIT', 0, 1000)) do
    local w = webhookOf(ref)
    local e, known = w and endpoints.get(w), deliveries.get(ref)
    local d = e and known and known.token == token and delivery(e.a, ref)
    if d then held[#held + 1] = { ref, d, known.isShort } end
  end
  table.sort(held, function(one, other) return one[2].at < other[2].at end)
  for _, item in ipairs(held) do
    local ref, d = item[1], item[2]
    local e = endpoints.get(webhookOf(ref))
    give(ref, e, item[3] and '' or deliveryLine(d))
    local ek = e.a .. '/' .. eventOf(ref)
    if not given[ek] then
      given[ek] = true
      events[#events + 1] = { ek, call('HGET', EVENTS, ek) or '' }
    end
  end

  if #held == 0 then
    for lane, left in pairs(room) do
      while left > 0 do
        local sum = turnOf(lane, left)
        if sum == 0 then break end
        left = left - sum
      end
    end
  end

  -- Reads the deliveries and events of all that was taken at once, and writes the leases.
  local refs, eks = {}, {}
  for i, item in ipairs(taken) do
    refs[i] = item[1]
    local ek = item[3].a .. '/' .. eventOf(item[1])
    item[4] = ek
    if not given[ek] then
      given[ek] = true
      eks[#eks + 1] = ek
    end
  end
  local heads, isThere = {}, {}
  if #eks > 0 then
    deliveries.fetch(refs)
    for i, value in ipairs(call('HMGET', EVENTS, unpack(eks))) do
      heads[eks[i]], isThere[eks[i]] = value and headOf(value) or nil, value and true
      if value then events[#events + 1] = { eks[i], value } end
    end
  end
  for _, item in ipairs(taken) do
    local ref, w, e, ek = item[1], item[2], item[3], item[4]
    local event = heads[ek]
    local d = deliveries.get(ref)
    if not d and event and not string.find(ref, '.', 1, true) then
      deliveries.set(ref, { isShort = true, state = 'l', token = token }, 'l:' .. token)
      leases.add(ref, leaseUntil)
      give(ref, e, '')
    elseif not d or d.isBroken or not event then
      lease(w, -1)
      local reason = isThere[ek] and 'payload_unreadable' or 'payload_missing'
      park(ref, w, e, d, event and 'record_unreadable' or reason)
    else
      d.state, d.token = 'l', token
      local line = deliveryLine(d)
      deliveries.set(ref, d, line .. d.attempts)
      leases.add(ref, leaseUntil)
      give(ref, e, line)
    end
  end

  boundEnded()
  flush()
  if turn then call('HSET', META, 'turn', string.format('%.17g', turn)) end

  local nextAt = ''
  for _, key in ipairs({ FAST, SLOW, LEASES }) do
    local at = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or nil)
    if at and (nextAt == '' or at < nextAt) then nextAt = at end
  end
  if nextAt ~= '' then nextAt = text(math.floor(nextAt)) end

  call('HSETNX', META, 'mark', token)
  return { nextAt, claims, webhooks, events, parked, call('HGET', META, 'mark') }
end
