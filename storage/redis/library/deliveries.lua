-- Stored events and deliveries.
--
-- A reference names a delivery: `<webhook>/<event>` or `<webhook>/<event>.<serial>`. A delivery that
-- was never claimed may have no record: then the log and the queue alone hold it. The states are
-- `p` pending, `l` leased, `d` delivered, `f` failed, `w` withheld. `token` is that of the lease while
-- it lasts, and then the nonce of the call that ended it, by which a repetition is recognised.

-- Empty fields at the end of a line are left out. Empty means 0 or none; for `dueAt` the time at
-- which the event was stored; for `queuedAt` that time less the head start of first attempts; for
-- `order` that of the event.
local FIELDS = {
  'state', 'token', 'startedAt', 'completedAt', 'step', 'dueAt', 'postponed', 'crashes', 'extraAt',
  'recovered', 'reason', 'queuedAt', 'order',
}
local TEXT_FIELDS = { token = true, reason = true, order = true }

local deliveries = hash('deliveries', function(value)
  local line, attempts = string.match(value, '^([^\n]*)(.*)$')
  local d, length = { attempts = attempts }, 0
  for field in string.gmatch(line .. ',', '([^,]*),') do
    length = length + 1
    local name = FIELDS[length] or length
    d[name] = field
    if length > 1 and not TEXT_FIELDS[name] and string.find(field, '^%d*$') == nil then
      d.isBroken = length <= #FIELDS or d.isBroken
    end
  end
  for i = length + 1, #FIELDS do d[FIELDS[i]] = '' end
  d.length = math.max(length, #FIELDS)
  d.isBroken = d.isBroken or not string.find(d.state, '^[pldfw]$')
  return d
end, function(d)
  local fields, last = {}, 0
  for i = 1, d.length do
    fields[i] = d[FIELDS[i] or i]
    if fields[i] ~= '' then last = i end
  end
  return table.concat(fields, ',', 1, last) .. d.attempts
end)

-- A delivery between its creation and its first claim.
local function newDelivery(order)
  local d = { state = 'p', attempts = '', length = #FIELDS }
  for i = 2, #FIELDS do d[FIELDS[i]] = '' end
  d.order = order
  return d
end

local log = sortedSet('log')

local function isOpen(d) return d.state == 'p' or d.state == 'l' end

-- Nil if `ref` is no reference.
local function webhookOf(ref) return string.match(ref, '^(%d+)/') end
local function suffixOf(ref) return string.match(ref, '/(.+)$') end
local function eventOf(ref) return string.match(ref, '/([^./]+)') end
local function toRef(webhook, event, serial)
  return webhook .. '/' .. event .. ((serial == '' or serial == '0') and '' or '.' .. serial)
end

-- The events that this call has read. Deliveries of one event are mostly handled together, and
-- reading an event reads its body too.
local events

-- Returns the head of a stored event; nil if it is missing or cannot be read.
local function getEvent(account, event)
  local key = account .. '/' .. event
  if events[key] == nil then
    local value = call('HGET', keys.events, key)
    local order, rememberUntil, nonce, receivers, digest, label, bodyAt =
      string.match(value or '', '^(%x+),(%d+),([^,\n]*),([^,\n]*)\n([^\n]*)\n([^\n]*)\n()')
    events[key] = bodyAt and {
      order = order, rememberUntil = tonumber(rememberUntil), nonce = nonce, receivers = receivers,
      digest = digest, label = label, bytes = #value,
    } or false
  end
  return events[key] or nil
end

-- A label is the type of an event, then its subject and its tags, each after a comma. The subject is
-- empty if there are only tags.
local function typeOf(label) return string.match(label, '^[^,]*') end
local function subjectOf(label) return string.match(label, '^[^,]*,([^,]*)') end

local keyIndex = sortedSet('eventKeys')

-- Calls `change` with each member by which an event is found: one for its subject, one for each tag.
local function forEachKey(account, order, event, label, change)
  local place = 0
  for part in string.gmatch(label .. ',', '([^,]*),') do
    place = place + 1
    if place > 1 and part ~= '' then
      change(keyIndex, table.concat({ account, (place == 2 and 's.' or 't.') .. part, order, event }, '/'), 0)
    end
  end
end

-- The parts of an entry of the log: order, event, label, webhooks with serials.
local function readEntry(entry) return string.match(entry, '^%d+/(%x+)/([^/]+)/([^/]*)/(.*)$') end

-- The deliveries of an entry of the log: their webhooks by their references.
local function deliveriesIn(event, receivers)
  local refs = {}
  for webhook, serial in string.gmatch(receivers, '(%d+)%.?(%d*)') do
    refs[toRef(webhook, event, serial)] = webhook
  end
  return refs
end

-- Returns a delivery, claimed or not. Nil if it does not exist.
local function getDelivery(account, ref)
  local d = deliveries:get(ref)
  if d or string.find(ref, '.', 1, true) then return d end
  local event = getEvent(account, eventOf(ref))
  local entry = event and firstBelow(keys.log, account .. '/' .. event.order)
  local receivers = entry and ';' .. string.match(entry, '[^/]*$') .. ';'
  if not receivers or not string.find(receivers, ';' .. webhookOf(ref) .. ';', 1, true) then return nil end
  return newDelivery('')
end

local function createdAtOf(account, ref, d)
  local event = d.order == '' and getEvent(account, eventOf(ref))
  return timeOf(event and event.order or d.order) or 0
end

-- The member of the queue at which a pending delivery stands.
local function queueMember(account, ref, d)
  local at = tonumber(d.queuedAt)
  if not at then
    local createdAt = createdAtOf(account, ref, d)
    at = math.max(0, findQueueTime(nil, createdAt, nil, createdAt))
  end
  return webhookOf(ref) .. '/' .. hex(at) .. '/' .. suffixOf(ref)
end

-- Adds a pending delivery to the queue of its endpoint.
local function enqueue(account, ref, d)
  local dueAt = tonumber(d.dueAt) or createdAtOf(account, ref, d)
  d.state, d.queuedAt =
    'p', text(math.max(0, findQueueTime(tonumber(d.startedAt), dueAt, tonumber(d.extraAt), now)))
  queue:add(queueMember(account, ref, d), 0)
  deliveries:set(ref, d)
  touched[webhookOf(ref)] = true
end

-- Orders grow with each event and later delivery of the partition. An order has 11 digits for the
-- time and 4 that count within it.
local function nextOrder()
  local last, order = meta:text('order') or '', nowHex .. '0000'
  if #last == #order and order <= last and string.find(last, '^%x+$') then
    local at, count = string.sub(last, 1, 11), tonumber(string.sub(last, 12), 16) + 1
    if count > 65535 then at, count = hex(tonumber(at, 16) + 1), 0 end
    order = at .. string.format('%04x', count)
  end
  meta:setText('order', order)
  return order
end
