-- Attempts beyond the schedule: `resend` and `recover`. Options of both: account, id of the webhook,
-- pending and pendingPerAccount (the bounds).

-- Returns the bound that further deliveries of an account would exceed; nil if they fit.
local function findExceeded(account, added)
  if getAccountCounts(account).pending + added > options.pendingPerAccount then return 'pendingPerAccount' end
  if call('ZCARD', keys.queue) + call('ZCARD', keys.leases) + added > options.pending then
    return 'pending'
  end
end

-- Adds a later delivery to a stored event. Returns its reference.
local function addDelivery(webhook, endpoint, event, label, serial, dueAt)
  local account, order = endpoint.accountNumber, nextOrder()
  local ref, d, p = toRef(webhook, event, tostring(serial)), newDelivery(order), getProgress(account, event)
  d.dueAt = text(dueAt)
  p.later = p.later .. webhook .. '.' .. serial .. ';'
  reopenEvent(account, event, p)
  enqueue(account, ref, d)
  log:add(table.concat({ account, order, event, label, webhook .. '.' .. serial }, '/'), 0)
  count(account, 'pending', 1)
  return ref
end

-- The serials of the later deliveries of an event to a webhook, the oldest first.
local function listSerials(account, event, webhook)
  local serials = {}
  for number, serial in string.gmatch(getProgress(account, event).later, '(%d+)%.(%d+)') do
    if number == webhook and serial ~= '0' then serials[#serials + 1] = serial end
  end
  return serials
end

-- Has a waiting delivery attempted at `at`, in addition to its schedule.
local function requestExtra(account, ref, at)
  local d = getDelivery(account, ref)
  queue:remove(queueMember(account, ref, d))
  d.extraAt = text(at)
  enqueue(account, ref, d)
end

-- Schedules one more attempt: of the waiting delivery to this webhook, or of a new delivery. Options:
-- suffix of the delivery; force: even if an attempt is in flight.
--
-- Replies: empty if there is no such delivery, `full` with the bound, `inflight` with the suffix, or
-- `sent` with the suffix and the time that workers are notified of.
define('resend', PARTITION_KEYS, MAY_GROW, function()
  local webhook, endpoint = findEndpoint(options.account, options.id)
  if not webhook then return {} end
  local account, event = endpoint.accountNumber, string.match(options.suffix, '^[^.]*')
  local stored = getEvent(account, event)
  local first = webhook .. '/' .. event
  if not stored or not getDelivery(account, webhook .. '/' .. options.suffix) then return {} end

  local waiting, leased
  local nextSerial = getDelivery(account, first) and 1 or 0
  local refs = { first }
  for _, serial in ipairs(listSerials(account, event, webhook)) do
    refs[#refs + 1] = toRef(webhook, event, serial)
    nextSerial = tonumber(serial) + 1
  end
  for _, ref in ipairs(refs) do
    local d = getDelivery(account, ref)
    if d and d.state == 'l' then leased = ref end
    if d and d.state == 'p' and not waiting then waiting = ref end
  end
  if leased and not options.force then return { 'inflight', suffixOf(leased) } end

  checkTypes({ 'readyFast', 'readySlow', 'log', 'completed', 'inFlight', 'rates' })
  local sent = waiting
  if waiting then
    local d = getDelivery(account, waiting)
    if (tonumber(d.extraAt) or tonumber(d.dueAt) or createdAtOf(account, waiting, d)) > now then
      requestExtra(account, waiting, now)
    end
  else
    local bound = findExceeded(account, 1)
    if bound then return { 'full', bound } end
    sent = addDelivery(webhook, endpoint, event, stored.label, nextSerial, now)
  end
  flush()
  return { 'sent', suffixOf(sent), text(notifyAt) }
end)

-- Repairs what a webhook did not get: of stored events that it subscribes to. For a webhook an event is
-- in one of five states: `p` (a delivery is pending), `d` (one was delivered), `m` (no delivery), `w`
-- (at least one was withheld), `f` (all of them failed). For `p`, the delivery that waits for a retry is
-- moved; for the others, a delivery is created.
--
-- Options: since; to, the end of the range if it has one; after, the
-- order to continue after or empty; limit, the most events to examine; nonce; dueAt, when the first
-- delivery is due; everyMs, how much later each further one is due; maxRecovered, the most deliveries to
-- create or move; types and subject of the events, if only of those; states, their letters; maxSerial;
-- isDryRun, to count only; filter, the name of the filter that the caller has applied to events, and
-- passes, by the ids of these events, if they pass it.
--
-- Replies: empty if there is no such webhook, `full` with the bound, or `made` with how many, where
-- to continue, the time that workers are notified of, and how many events were examined; `undecided`
-- with the account's number, the name of the webhook's filter and the next events that the caller
-- has to apply it to. The caller then calls again.

local READ_TOGETHER = 25
-- The most later deliveries to read: an event may have a hundred to a webhook, and each has a
-- record.
local MAX_LATER = 1000
-- The most events that the caller has to read at once.
local MAX_UNDECIDED = 50

-- The state of one call: the webhook with the types it subscribes to and its filter, by type if its
-- events are wanted, and how many later deliveries were read.
local webhook, endpoint, account, subscribed, filter, isWanted, laterRead
-- The entries to send again, how many of them get another delivery, and the events that the caller has
-- to apply the filter to.
local planned, created, undecided

local function findSubscription()
  for number, _, _, types in string.gmatch(readAccount(options.account).subscriptions, SUBSCRIPTION) do
    if number == webhook then return types end
  end
  return ''
end

local function wantsType(type)
  if isWanted[type] == nil then
    local isNamed = not options.types
    for _, name in ipairs(options.types or {}) do isNamed = isNamed or name == type end
    isWanted[type] = isNamed and subscribes(subscribed, listPatterns(type))
  end
  return isWanted[type]
end

-- Parses an entry of the log. `isCandidate`: the webhook subscribes to the type of its event, which
-- has the subject that is wanted and is not a test.
local function readCandidate(entry)
  local order, event, label, receivers = readEntry(entry)
  local isCandidate = not string.find(receivers, '.', 1, true) and wantsType(typeOf(label))
    and (not options.subject or subjectOf(label) == options.subject)
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

local function isWantedState(pattern) return string.find(options.states, pattern) end

-- True if a delivery waits for a retry that is due after `at`: `isMovable` of storage/queue.
local function isMovable(d, at)
  return d.state == 'p' and d.startedAt ~= '' and d.extraAt == '' and (tonumber(d.dueAt) or 0) > at
end

-- How many deliveries of an event to the webhook are in each state, by its letter; `n` of them in all.
-- `waiting`: the first that may be moved to `at`. Nil if one of them cannot be read.
local function countStates(entry, at)
  local counts = { n = 0, p = 0, d = 0, f = 0, w = 0 }
  local first, refs = webhook .. '/' .. entry.event, {}
  local isReceiver = string.find(';' .. entry.receivers .. ';', ';' .. webhook .. ';', 1, true)
  local d = deliveries:get(first)
  -- Such an event is pending or was delivered, whatever became of its later deliveries.
  if d and d.state ~= 'f' and d.state ~= 'w' and not isWantedState('[pd]') then return nil end
  if d then
    refs[1] = first
  elseif isReceiver then
    -- A delivery without a record was never claimed: it is pending.
    counts.n, counts.p = 1, 1
  end
  local nextSerial = (isReceiver or refs[1]) and 1 or 0
  for _, serial in ipairs(listSerials(account, entry.event, webhook)) do
    refs[#refs + 1] = toRef(webhook, entry.event, serial)
    nextSerial = tonumber(serial) + 1
  end
  laterRead = laterRead + #refs - (refs[1] == first and 1 or 0)
  deliveries:fetch(refs)
  for _, ref in ipairs(refs) do
    local d = deliveries:get(ref)
    if d and d.isBroken then return nil end
    if d then
      local state = isOpen(d) and 'p' or d.state
      counts.n, counts[state] = counts.n + 1, counts[state] + 1
      if not counts.waiting and isMovable(d, at) then counts.waiting = ref end
    end
  end
  return counts, nextSerial
end

-- `findStanding` of storage/queue.
local function findStanding(counts)
  if counts.p > 0 then return 'p' end
  if counts.d > 0 then return 'd' end
  if counts.n == 0 then return 'm' end
  return counts.w > 0 and 'w' or 'f'
end

-- Notes for an entry the delivery to move, or the serial of the one to create. Returns false if
-- nothing is to be done: the event is in another state than those wanted, or was sent again too often.
local function plan(entry, at)
  local counts, nextSerial = countStates(entry, at)
  if not counts then return false end
  local standing = findStanding(counts)
  if not isWantedState(standing) then return false end
  if standing == 'p' then
    entry.waiting = counts.waiting
    return entry.waiting ~= nil
  end
  entry.serial = nextSerial
  return nextSerial <= options.maxSerial
end

local function isFull()
  return #planned == options.maxRecovered or laterRead >= MAX_LATER or #undecided == MAX_UNDECIDED
end

-- True if an event passes the filter; nil if the caller has not applied it.
local function isPassed(entry)
  if not filter then return true end
  if options.filter ~= filter then return nil end
  return options.passes[entry.event]
end

-- Plans what to send again of some entries. Returns how many were examined, and the last of them.
local function planAll(entries)
  local examined, last = 0, ''
  for first = 1, #entries, READ_TOGETHER do
    if isFull() then break end
    local batch = {}
    for i = first, math.min(first + READ_TOGETHER - 1, #entries) do
      batch[#batch + 1] = readCandidate(entries[i])
    end
    fetchFor(batch)
    for _, entry in ipairs(batch) do
      if isFull() then break end
      entry.dueAt = options.dueAt + #planned * options.everyMs
      local isPlanned = entry.isCandidate and plan(entry, entry.dueAt)
      if isPlanned and isPassed(entry) == nil then undecided[#undecided + 1] = entry.event end
      -- A call that was told something ends before the first event that is undecided, if it gets on.
      -- Otherwise it changes nothing, and lists the events that are undecided.
      if #undecided == 0 then
        examined, last = examined + 1, entry.order
        if isPlanned and isPassed(entry) then
          planned[#planned + 1] = entry
          if entry.serial then created = created + 1 end
        end
      end
    end
  end
  return examined, last
end

local function listEntries()
  local since, after = hex(options.since), options.after
  local from, to = '[' .. account .. '/' .. since, '(' .. account .. '0'
  if options.to then to = '(' .. account .. '/' .. hex(options.to) end
  if after ~= '' and after > since then from = '[' .. account .. '/' .. after .. '0' end
  return call('ZRANGEBYLEX', keys.log, from, to, 'LIMIT', 0, options.limit)
end

define('recover', PARTITION_KEYS, MAY_GROW, function()
  local repeated = findReply()
  if repeated then
    local made, examined, next = string.match(repeated, '^(%d+) (%d+) (%x*)$')
    return { 'made', made, next, '', examined }
  end
  webhook, endpoint = findEndpoint(options.account, options.id)
  if not webhook then return {} end
  account, subscribed = endpoint.accountNumber, findSubscription()
  filter, isWanted, laterRead = getFilterName(subscribed), {}, 0
  planned, created, undecided = {}, 0, {}
  local entries = listEntries()
  local examined, last = planAll(entries)
  local isApplied = filter and options.filter == filter
  if #undecided > 0 and not (isApplied and examined > 0) then
    return { 'undecided', account, filter, undecided }
  end
  local next = (examined < #entries or #entries == options.limit) and last or ''
  if options.isDryRun then return { 'made', #planned, next, '', examined } end

  local bound = created > 0 and findExceeded(account, created)
  if bound then return { 'full', bound } end
  checkTypes({ 'readyFast', 'readySlow', 'completed', 'expirations', 'inFlight', 'rates' })
  for _, entry in ipairs(planned) do
    if entry.serial then
      addDelivery(webhook, endpoint, entry.event, entry.label, entry.serial, entry.dueAt)
    else
      requestExtra(account, entry.waiting, entry.dueAt)
    end
  end
  flush()
  if #planned > 0 then rememberReply(#planned .. ' ' .. examined .. ' ' .. next) end
  return { 'made', #planned, next, text(notifyAt), examined }
end)
