-- Erasing events with their deliveries in every state.

-- Deletes a delivery in any state. Returns false if it does not exist.
local function eraseDelivery(account, ref)
  local d = getDelivery(account, ref)
  if not d then return false end
  local webhook = webhookOf(ref)
  if d.isBroken then
    -- Its place is unknown. `check()` finds what is left of it.
    leases:remove(ref)
  elseif d.state == 'p' then
    queue:remove(queueMember(account, ref, d))
  elseif d.state == 'l' then
    leases:remove(ref)
    if endpoints:get(webhook) then changeInFlight(webhook, -1) end
  end
  if d.isBroken or not isOpen(d) then
    metaAdded.completed = metaAdded.completed - 1
    countDelivery(webhook, d, -1)
  else
    count(account, 'pending', -1)
    if endpoints:get(webhook) then touched[webhook] = true end
  end
  deliveries:delete(ref)
  return true
end

-- Deletes what belongs to an event apart from its deliveries.
local function eraseRecord(account, event)
  local key, p, stored = account .. '/' .. event, getProgress(account, event), getEvent(account, event)
  if p.completedAt ~= '' then
    completed:remove(completedMember(account, event, p))
    count(account, 'completed', -1)
  end
  progress:delete(key)
  call('HDEL', EVENTS, key)
  events[key] = false
  if not stored then return end
  forEachKey(account, stored.order, event, stored.label, keyIndex.remove)
  metaAdded.bytes = metaAdded.bytes - stored.bytes
end

-- Erases a stored event. Returns the number of its deliveries.
local function eraseEvent(account, event)
  local stored, p, count = getEvent(account, event), getProgress(account, event), 0
  local entry = firstBelow(LOG, account .. '/' .. stored.order)
  for webhook in string.gmatch(entry and string.match(entry, '[^/]*$') or '', '(%d+)%.?0?') do
    if eraseDelivery(account, webhook .. '/' .. event) then count = count + 1 end
  end
  if entry then log:remove(entry) end
  for webhook, serial in string.gmatch(p.later, '(%d+)%.(%d+)') do
    local ref = toRef(webhook, event, serial)
    local d = deliveries:get(ref)
    local later = d and d.order ~= '' and firstBelow(LOG, account .. '/' .. d.order)
    if eraseDelivery(account, ref) then count = count + 1 end
    if later then log:remove(later) end
  end
  eraseRecord(account, event)
  return count
end

-- Erases what is left of an event whose record is missing or cannot be read.
local function eraseUnreadable(account, event, receivers)
  local count = 0
  for ref in pairs(deliveriesIn(event, receivers)) do
    if eraseDelivery(account, ref) then count = count + 1 end
  end
  eraseRecord(account, event)
  return count
end
