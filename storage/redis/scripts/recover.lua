-- Creates the deliveries that a webhook missed: of stored events that it subscribes to, did not
-- receive and has no pending delivery of. The event is in one of three states: `m` (no delivery to
-- the webhook), `f` (all of them failed), `w` (at least one was withheld).
--
-- ARGV: most pending, most pending of an account, account, webhook's id, since, the order to
-- continue after or empty, most events to examine, nonce, when the first delivery is due, how much
-- later each further one is due, most deliveries to create, the type of the events or empty, the
-- letters of the states, the highest serial of a delivery.
--
-- Replies: empty if there is no such webhook, `full` with the bound, or `made` with how many, where
-- to continue, the time that workers are notified of, and how many events were examined.

local mostPending, mostPendingPerAccount = tonumber(ARGV[5]), tonumber(ARGV[6])
local account, id, since, after, limit = ARGV[7], ARGV[8], tonumber(ARGV[9]), ARGV[10], tonumber(ARGV[11])
local nonce, dueAt, everyMs, mostMade = ARGV[12], tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])
local wantedType, wantedStates, maxSerial = ARGV[16], ARGV[17], tonumber(ARGV[18])
local READ_TOGETHER = 25
-- The most later deliveries to read: an event may have a hundred to a webhook, and each has a
-- record.
local MOST_LATER = 1000
local repeated = findReply(nonce)
if repeated then
  local made, examined, next = string.match(repeated, '^(%d+) (%d+) (%x*)$')
  return { 'made', made, next, '', examined }
end
local w = call('HGET', IDS, id)
local e = w and endpoints.get(w)
if not e or e.account ~= account then return {} end

local types = ''
for own, known in string.gmatch(readRoster(account).lines, '(%d+) %a %S+ ([^\n]*)\n') do
  if own == w then types = known end
end
local isWanted = {}
local function wantsType(type)
  if wantedType ~= '' and type ~= wantedType then return false end
  if isWanted[type] == nil then isWanted[type] = subscribes(types, listPatterns(type)) end
  return isWanted[type]
end

-- Parses an entry of the log. `isCandidate`: the webhook subscribes to the type of its event, and
-- the event is not a test.
local function readEntry(entry)
  local order, ek, label, receivers = string.match(entry, '^%d+/(%x+)/([^/]+)/([^/]*)/(.*)$')
  local isCandidate = not string.find(receivers, '.', 1, true) and wantsType(typeOf(label))
  return { order = order, ek = ek, label = label, receivers = receivers, isCandidate = isCandidate }
end

-- Reads with few commands the records that most entries need: the progress of the event and its
-- first delivery to the webhook.
local function fetchFor(batch)
  local eks, refs = {}, {}
  for _, entry in ipairs(batch) do
    if entry.isCandidate then
      eks[#eks + 1] = e.a .. '/' .. entry.ek
      refs[#refs + 1] = w .. '/' .. entry.ek
    end
  end
  progresses.fetch(eks)
  deliveries.fetch(refs)
end

local laterRead = 0

-- The serials of the later deliveries of an entry to this webhook, the oldest first, with their
-- records in memory.
local function laterSerials(entry, count)
  local serials, refs = {}, {}
  for own, serial in string.gmatch(getProgress(e.a, entry.ek, count).later, '(%d+)%.(%d+)') do
    laterRead = laterRead + 1
    if own == w and serial ~= '0' then
      serials[#serials + 1] = serial
      refs[#refs + 1] = w .. '/' .. entry.ek .. '.' .. serial
    end
  end
  if #refs > 0 then deliveries.fetch(refs) end
  return serials
end

-- The event of an entry with the serial of the delivery to create. Nil if a delivery is pending or
-- delivered, if the event is in another state than those wanted, or if it was sent again too often.
local function findMissing(entry)
  local first = w .. '/' .. entry.ek
  local d = deliveries.get(first)
  local isReceiver = string.find(';' .. entry.receivers .. ';', ';' .. w .. ';', 1, true)
  -- A delivery without a record was never claimed: it is pending.
  if isReceiver and not d then return nil end
  local state = d and d.state or 'm'
  if state ~= 'm' and state ~= 'f' and state ~= 'w' then return nil end
  local _, count = string.gsub(entry.receivers, '%d+', '')
  local nextSerial = d and 1 or 0
  for _, serial in ipairs(laterSerials(entry, count)) do
    local later = deliveries.get(first .. '.' .. serial)
    if later and later.state == 'w' then state = 'w' end
    if later and later.state ~= 'f' and later.state ~= 'w' then return nil end
    nextSerial = tonumber(serial) + 1
  end
  if nextSerial > maxSerial or not string.find(wantedStates, state, 1, true) then return nil end
  return { ek = entry.ek, event = { count = count, label = entry.label }, serial = nextSerial }
end

local from = '[' .. e.a .. '/' .. hex(since)
if after ~= '' and after > hex(since) then from = '[' .. e.a .. '/' .. after .. '0' end
local _, to = below(e.a)
local entries = call('ZRANGEBYLEX', LOG, from, to, 'LIMIT', 0, limit)
local lost, last, examined = {}, '', 0
local function isFull() return #lost == mostMade or laterRead >= MOST_LATER end
for first = 1, #entries, READ_TOGETHER do
  if isFull() then break end
  local batch = {}
  for i = first, math.min(first + READ_TOGETHER - 1, #entries) do batch[#batch + 1] = readEntry(entries[i]) end
  fetchFor(batch)
  for _, entry in ipairs(batch) do
    if isFull() then break end
    examined, last = examined + 1, entry.order
    lost[#lost + 1] = entry.isCandidate and findMissing(entry) or nil
  end
end

local bound = #lost > 0 and passedBound(e.a, #lost, mostPending, mostPendingPerAccount)
if bound then return { 'full', bound } end
for i, item in ipairs(lost) do addDelivery(w, e, item.ek, item.event, item.serial, dueAt + (i - 1) * everyMs) end
progresses.flush()
flush()
local next = (examined < #entries or #entries == limit) and last or ''
if #lost > 0 then rememberReply(nonce, #lost .. ' ' .. examined .. ' ' .. next) end
return { 'made', #lost, next, notifyAt and text(notifyAt) or '', examined }
