-- Expired leases, and deliveries whose records cannot be read.

local REAPED_PER_CALL = 100

-- References whose records cannot be read. They end as failed, so that they do not hold up the
-- rest; the caller logs an error.
local parked = {}

local function park(ref, w, e, d, reason)
  parked[#parked + 1] = ref
  if not d or d.isBroken then
    local event = storedEvent(e.a, eventOf(ref))
    d = event and freshDelivery(event.order, event.count) or freshDelivery(nextOrder(), 1)
  end
  d.state = 'p'
  completeDelivery(e, ref, d, 'f', reason)
  touched[w] = true
end

-- Why the delivery of a reference cannot be attempted. Nil if its event can be read.
local function findDefect(e, ref)
  local ek = eventOf(ref)
  if not ek then return 'record_unreadable' end
  if storedEvent(e.a, ek) then return nil end
  return call('HEXISTS', EVENTS, e.a .. '/' .. ek) == 1 and 'payload_unreadable' or 'payload_missing'
end

-- Releases a lease, and completes its delivery as failed.
local function parkLeased(ref, w, e, reason)
  leases.remove(ref)
  lease(w, -1)
  touched[w] = true
  local d = deliveries.get(ref)
  park(ref, w, e, d and not d.isBroken and not d.isShort and d or nil, reason)
end

local function recoverExpired()
  local refs = call('ZRANGEBYSCORE', LEASES, '-inf', text(now), 'LIMIT', 0, REAPED_PER_CALL)
  deliveries.fetch(refs)
  for _, ref in ipairs(refs) do
    local w = webhookOf(ref)
    local e, d = w and endpoints.get(w), deliveries.get(ref)
    local reason = e and (d and d.isBroken and 'record_unreadable' or findDefect(e, ref))
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
