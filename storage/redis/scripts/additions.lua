-- Deliveries that are added to a stored event, and the bounds on pending deliveries.

local allPending

-- The name of the bound that `more` deliveries of an account would exceed. Nil if they fit: then
-- they are counted.
local function passedBound(a, more, most, mostPerAccount)
  allPending = allPending or call('ZCARD', QUEUE) + call('ZCARD', LEASES)
  if book(a).pending + more > mostPerAccount then return 'pendingPerAccount' end
  if allPending + more > most then return 'pending' end
  allPending = allPending + more
  return nil
end

-- Adds a later delivery to a stored event.
local function addDelivery(w, e, ek, event, serial, dueAt)
  local ref = w .. '/' .. ek .. (serial == 0 and '' or '.' .. serial)
  local d = freshDelivery(nextOrder(), 0)
  d.dueAt = text(dueAt)
  local progress = getProgress(e.a, ek, event.count)
  if progress.endedAt ~= '' then
    ended.remove(endedMember(e.a, ek, progress.endedAt))
    count(e.a, 'ended', -1)
  end
  progress.open, progress.endedAt = progress.open + 1, ''
  progress.later = progress.later .. w .. '.' .. serial .. ';'
  saveProgress(e.a, ek, progress)
  enqueue(ref, d)
  log.add(table.concat({ e.a, d.order, ek, event.label, w .. '.' .. serial }, '/'), 0)
  count(e.a, 'pending', 1)
  return ref
end

-- All deliveries of an event to one webhook, the latest last, each as { ref, delivery }, and the
-- serial of the next one.
local function deliveriesTo(w, e, ek, event)
  local found, nextSerial = {}, 0
  local first = w .. '/' .. ek
  local d = delivery(e.a, first)
  if d then
    found[1] = { first, d }
    nextSerial = 1
  end
  for own, serial in string.gmatch(getProgress(e.a, ek, event.count).later, '(%d+)%.(%d+)') do
    if own == w and serial ~= '0' then
      local ref = first .. '.' .. serial
      local later = delivery(e.a, ref)
      if later then found[#found + 1] = { ref, later } end
      nextSerial = tonumber(serial) + 1
    end
  end
  return found, nextSerial
end
