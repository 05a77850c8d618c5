-- Creates the deliveries that a webhook missed: of stored events that it subscribes to, did not
-- receive and has no pending delivery of. The event is in one of three states: `m` (no delivery to
-- the webhook), `f` (all of them failed), `w` (at least one was withheld).
--
-- Options, beside those of lib/later.lua: since; after, the order to continue after or empty; limit,
-- the most events to examine; nonce; dueAt, when the first delivery is due; everyMs, how much later
-- each further one is due; maxRecovered, the most deliveries to create; type of the events, if only of
-- one; states, their letters; maxSerial.
--
-- Replies: empty if there is no such webhook, `full` with the bound, or `made` with how many, where
-- to continue, the time that workers are notified of, and how many events were examined.

local READ_TOGETHER = 25
-- The most later deliveries to read: an event may have a hundred to a webhook, and each has a
-- record.
local MAX_LATER = 1000

local repeated = findReply()
if repeated then
  local made, examined, next = string.match(repeated, '^(%d+) (%d+) (%x*)$')
  return { 'made', made, next, '', examined }
end
local webhook, endpoint = findEndpoint(options.account, options.id)
if not webhook then return {} end
local account = endpoint.accountNumber

local subscribed = ''
for number, _, _, types in string.gmatch(readAccount(options.account).subscriptions, SUBSCRIPTION) do
  if number == webhook then subscribed = types end
end
local isWanted = {}
local function wantsType(type)
  if isWanted[type] == nil then
    isWanted[type] = (not options.type or type == options.type) and subscribes(subscribed, listPatterns(type))
  end
  return isWanted[type]
end

-- Parses an entry of the log. `isCandidate`: the webhook subscribes to the type of its event, and
-- the event is not a test.
local function readCandidate(entry)
  local order, event, label, receivers = readEntry(entry)
  local isCandidate = not string.find(receivers, '.', 1, true) and wantsType(typeOf(label))
  return { order = order, event = event, label = label, receivers = receivers, isCandidate = isCandidate }
end

-- Reads with few commands the records that most entries need: the progress of the event and its
-- first delivery to the webhook.
local function fetchFor(batch)
  local events, refs = {}, {}
  for _, entry in ipairs(batch) do
    if entry.isCandidate then
      events[#events + 1] = account .. '/' .. entry.event
      refs[#refs + 1] = webhook .. '/' .. entry.event
    end
  end
  progress:fetch(events)
  deliveries:fetch(refs)
end

local laterRead = 0

-- Returns the serial of the delivery to create. Nil if a delivery is pending or delivered, if the
-- event is in another state than those wanted, or if it was sent again too often.
local function findMissing(entry)
  local d = deliveries:get(webhook .. '/' .. entry.event)
  local isReceiver = string.find(';' .. entry.receivers .. ';', ';' .. webhook .. ';', 1, true)
  -- A delivery without a record was never claimed: it is pending.
  if isReceiver and not d then return nil end
  local state = d and d.state or 'm'
  if state ~= 'm' and state ~= 'f' and state ~= 'w' then return nil end
  local nextSerial, refs = d and 1 or 0, {}
  for _, serial in ipairs(listSerials(account, entry.event, webhook)) do
    refs[#refs + 1] = toRef(webhook, entry.event, serial)
    nextSerial = tonumber(serial) + 1
  end
  laterRead = laterRead + #refs
  deliveries:fetch(refs)
  for _, ref in ipairs(refs) do
    local later = deliveries:get(ref)
    if later and later.state == 'w' then state = 'w' end
    if later and later.state ~= 'f' and later.state ~= 'w' then return nil end
  end
  if nextSerial > options.maxSerial or not string.find(options.states, state, 1, true) then return nil end
  return nextSerial
end

local from, to = '[' .. account .. '/' .. hex(options.since), '(' .. account .. '0'
if options.after ~= '' and options.after > hex(options.since) then from = '[' .. account .. '/' .. options.after .. '0' end
local entries = call('ZRANGEBYLEX', LOG, from, to, 'LIMIT', 0, options.limit)
local missing, last, examined = {}, '', 0
local function isFull() return #missing == options.maxRecovered or laterRead >= MAX_LATER end
for first = 1, #entries, READ_TOGETHER do
  if isFull() then break end
  local batch = {}
  for i = first, math.min(first + READ_TOGETHER - 1, #entries) do batch[#batch + 1] = readCandidate(entries[i]) end
  fetchFor(batch)
  for _, entry in ipairs(batch) do
    if isFull() then break end
    examined, last = examined + 1, entry.order
    entry.serial = entry.isCandidate and findMissing(entry) or nil
    if entry.serial then missing[#missing + 1] = entry end
  end
end

local bound = #missing > 0 and findExceeded(account, #missing)
if bound then return { 'full', bound } end
for i, entry in ipairs(missing) do
  addDelivery(webhook, endpoint, entry.event, entry.label, entry.serial, options.dueAt + (i - 1) * options.everyMs)
end
flush()
local next = (examined < #entries or #entries == options.limit) and last or ''
if #missing > 0 then rememberReply(#missing .. ' ' .. examined .. ' ' .. next) end
return { 'made', #missing, next, text(notifyAt), examined }
