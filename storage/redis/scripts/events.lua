-- Stored events, the order of the log, and the deliveries that follow from both.

-- A label is the type of an event, and after a comma its subject, if it has one.
local function typeOf(label) return string.match(label, '^[^,]*') end

local EVENT = '^(%x+),(%d+),(%d+),([^,]*),([^,\n]*)'

-- Decodes the head of a stored event: its order, how many deliveries it was stored with, until when
-- its id is remembered, the call that stored it, and the webhooks it went to.
local function readEvent(value)
  local order, count, rememberUntil, nonce, receivers = string.match(value, EVENT)
  if not order then return nil end
  local lineEnd = string.find(value, '\n', 1, true)
  local digestEnd = lineEnd and string.find(value, '\n', lineEnd + 1, true)
  local typeEnd = digestEnd and string.find(value, '\n', digestEnd + 1, true)
  if not typeEnd then return nil end
  return {
    order = order, count = tonumber(count), rememberUntil = tonumber(rememberUntil), nonce = nonce, receivers = receivers,
    digest = string.sub(value, lineEnd + 1, digestEnd - 1),
    label = string.sub(value, digestEnd + 1, typeEnd - 1),
  }
end

-- The events that this script has read. Deliveries of one event are mostly settled together, and
-- reading an event reads its body too. `freeEvent` removes the events that it frees.
local readEvents = {}

local function storedEvent(a, ek)
  local key = a .. '/' .. ek
  if not readEvents[key] then
    local value = call('HGET', EVENTS, key)
    readEvents[key] = value and readEvent(value)
  end
  return readEvents[key]
end

-- Orders grow with each event and later delivery of the partition. An order has 11 digits for the
-- time and 4 that count within it.
local lastOrder

local function nextOrder()
  lastOrder = lastOrder or string.match(call('HGET', META, 'order') or '', '^%x+$') or ''
  local order = hex(now) .. '0000'
  if order <= lastOrder and #lastOrder == #order then
    local at, count = tonumber(string.sub(lastOrder, 1, 11), 16), tonumber(string.sub(lastOrder, 12), 16) + 1
    if count > 65535 then at, count = at + 1, 0 end
    order = hex(at) .. string.format('%04x', count)
  end
  lastOrder = order
  return order
end

-- The present state of a delivery. Nil if it does not exist.
local function delivery(a, ref)
  local d = deliveries.get(ref)
  if d and not d.isShort then return d end
  if string.find(ref, '.', 1, true) then return nil end
  local event = storedEvent(a, eventOf(ref))
  if not event then return nil end
  if d then return expand(d, event.order, event.count) end
  local entry = call('ZRANGEBYLEX', LOG, '[' .. a .. '/' .. event.order .. '/', '(' .. a .. '/' .. event.order .. '0', 'LIMIT', 0, 1)[1]
  local receivers = entry and ';' .. string.match(entry, '[^/]*$') .. ';'
  if not receivers or not string.find(receivers, ';' .. webhookOf(ref) .. ';', 1, true) then return nil end
  return freshDelivery(event.order, event.count)
end

-- The deliveries of an entry of the log: their webhooks by their references.
local function deliveriesIn(ek, receivers)
  local refs = {}
  for w, serial in string.gmatch(receivers, '(%d+)(%.?%d*)') do
    refs[w .. '/' .. ek .. (serial == '.0' and '' or serial)] = w
  end
  return refs
end
