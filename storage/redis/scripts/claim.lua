-- Leases what is due, endpoint by endpoint, after giving back what was leased by somebody who has not been heard of since.
-- ARGV: token, lease until, room in the fast lane, room in the slow lane.
-- Answers: when to ask again, the claims as { reference, lane, line }, their webhooks as { webhook, text }, their events as { event, text }, what was parked, and the mark of this data set.

local token, leaseUntil = ARGV[5], ARGV[6]
local room = { f = tonumber(ARGV[7]), s = tonumber(ARGV[8]) }
local REAPED_PER_CALL = 100

goOnWhenFull()

-- What cannot be read is taken out of the way of the rest; the caller raises the alarm.
local parked = {}

local function park(ref, e, d, reason)
  parked[#parked + 1] = ref
  d = d or freshDelivery(nextOrder(), 1)
  d.state = 'p'
  endDelivery(e, ref, d, 'f', reason)
end

local function reap()
  for _, ref in ipairs(call('ZRANGEBYSCORE', LEASES, '-inf', text(now), 'LIMIT', 0, REAPED_PER_CALL)) do
    call('ZREM', LEASES, ref)
    local e = endpoint(webhookOf(ref))
    if e then
      lease(e, -1)
      e.isTouched = true
      local value = call('HGET', DELIVERIES, ref)
      local d = value and readDelivery(value)
      if d and d.state == 'l' then
        d.crashes, d.recovered, d.token = text(tonumber(d.crashes) + 1), '1', ''
        enqueue(ref, d)
        save(ref, d)
      elseif value and not d then
        park(ref, e, nil, 'record_unreadable')
      end
    end
  end
end

reap()
for w, e in pairs(endpoints) do
  if e and e.isTouched then
    offer(w, e)
    e.isTouched = false
  end
end
tidy()

local claims, webhooks, events = {}, {}, {}
local given = {}

local function give(ref, e, d)
  local w = webhookOf(ref)
  claims[#claims + 1] = { ref, e.lane, deliveryLine(d) }
  if not given[w] then
    given[w] = true
    webhooks[#webhooks + 1] = { w, endpointText(e) }
  end
end

-- The same request once more, since its answer was lost: it gets what it leased.
local isAgain = false
for _, ref in ipairs(call('ZRANGEBYSCORE', LEASES, leaseUntil, leaseUntil, 'LIMIT', 0, 1000)) do
  local value = call('HGET', DELIVERIES, ref)
  local d = value and readDelivery(value)
  local e = d and d.token == token and endpoint(webhookOf(ref))
  if e then
    isAgain = true
    give(ref, e, d)
    local ek = e.a .. '/' .. eventOf(ref)
    if not given[ek] then
      given[ek] = true
      events[#events + 1] = { ek, call('HGET', EVENTS, ek) or '' }
    end
  end
end

-- Takes due members of one endpoint's queue, and puts it behind the others where more is due.
local function take(w, e, most)
  local from, to = below(w)
  local members = call('ZRANGEBYLEX', QUEUE, from, to, 'LIMIT', 0, most + 1)
  local taken = {}
  local head
  for i, member in ipairs(members) do
    local at = timeOf(member)
    if i > most or at > now then
      head = at
      break
    end
    taken[i] = member
  end
  if #taken > 0 then
    call('ZREM', QUEUE, unpack(taken))
    lease(e, #taken)
  end
  if not head or freeSlots(e) <= 0 then
    call('ZREM', READY[e.lane], w)
  else
    local at = head <= now and nextTurn() or head
    call('ZADD', READY[e.lane], string.format('%.17g', at), w)
  end
  return taken
end

local taken = {}
if not isAgain then
  for _, lane in ipairs({ 'f', 's' }) do
    local line, left = READY[lane], room[lane]
    local dueBefore = '(' .. text(now + 1)
    local waiting = left > 0 and call('ZCOUNT', line, '-inf', dueBefore) or 0
    while left > 0 and waiting > 0 do
      local w = call('ZRANGEBYSCORE', line, '-inf', dueBefore, 'LIMIT', 0, 1)[1]
      if not w then break end
      local e = endpoint(w)
      if not e then
        call('ZREM', line, w)
      else
        local share = math.max(1, math.floor(left / waiting))
        local members = take(w, e, math.max(0, math.min(left, share, freeSlots(e))))
        for _, member in ipairs(members) do
          taken[#taken + 1] = { w .. '/' .. string.match(member, '^%d+/%x+/(.+)$'), e }
        end
        left = left - #members
      end
    end
  end
end

-- Reads the deliveries and events of all that was taken at once, then writes the leases.
if #taken > 0 then
  local refs, eks, places = {}, {}, {}
  for i, item in ipairs(taken) do
    refs[i] = item[1]
    local ek = item[2].a .. '/' .. eventOf(item[1])
    if not places[ek] then
      eks[#eks + 1] = ek
      places[ek] = #eks
    end
  end
  local records = call('HMGET', DELIVERIES, unpack(refs))
  local values = call('HMGET', EVENTS, unpack(eks))
  local heads = {}
  local written, leases = {}, {}
  for i, item in ipairs(taken) do
    local ref, e = item[1], item[2]
    local ek = e.a .. '/' .. eventOf(ref)
    local place = places[ek]
    heads[place] = heads[place] or values[place] and readEvent(values[place])
    local event = heads[place]
    local d = records[i] and readDelivery(records[i])
    if not records[i] and event then d = freshDelivery(event.order, event.count) end
    if not d or not event then
      lease(e, -1)
      e.isTouched = true
      park(ref, e, d or nil, d and 'payload_missing' or 'record_unreadable')
    else
      d.state, d.token = 'l', token
      written[#written + 1] = ref
      written[#written + 1] = deliveryLine(d) .. d.attempts
      leases[#leases + 1] = leaseUntil
      leases[#leases + 1] = ref
      give(ref, e, d)
      if not given[ek] then
        given[ek] = true
        events[#events + 1] = { ek, values[place] }
      end
    end
  end
  if #written > 0 then
    call('HSET', DELIVERIES, unpack(written))
    call('ZADD', LEASES, unpack(leases))
  end
end

flush()

local nextAt = ''
for _, key in ipairs({ FAST, SLOW, LEASES }) do
  local at = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or nil)
  if at and (nextAt == '' or at < nextAt) then nextAt = at end
end
if nextAt ~= '' then nextAt = text(math.floor(nextAt)) end

call('HSETNX', META, 'mark', token)
return { nextAt, claims, webhooks, events, parked, call('HGET', META, 'mark') }
