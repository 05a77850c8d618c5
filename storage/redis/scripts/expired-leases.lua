-- Leases that ran out, and what cannot be read.

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
