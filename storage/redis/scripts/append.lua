-- Stores events, each with all its deliveries or not at all. This file follows common-path.lua,
-- rosters.lua and remembered.lua; claim-due.lua follows it in the same script, and leases due deliveries.
--
-- ARGV from the ninth on: most pending, most pending of an account, a name for this data set where
-- it has none, and the place of the event whose caller claims (0 if none does; without that event
-- nothing is leased). Then three for each event: its account; a head of lines, which are its id, its
-- type, until when the id is remembered, the nonce of the call, the short id of the only webhook it is
-- for, and `1` if it follows the event before it in a list; and `digest⏎label⏎payload`.
--
-- `result` has a line for each event: `stored` or `duplicate` with its order, the short ids of its
-- webhooks, and how many webhooks its account has; `conflict`; `full` with the bound; or `skipped` if
-- it follows one that was not stored. The order is `-` if this call has not stored the event.

local FIRST, FIELDS = 13, 3
local mostPending, mostPendingPerAccount = tonumber(ARGV[9]), tonumber(ARGV[10])
local claimer = tonumber(ARGV[12])

local HEAD = '^([^\n]*)\n([^\n]*)\n(%d+)\n([^\n]*)\n([^\n]*)\n(.*)$'

local rosters, accounts, numbers = {}, {}, {}

local function accountOf(name)
  if accounts[name] == nil then
    local roster = readRoster(name)
    local account = { a = roster and roster.a or '', lines = roster and roster.lines or '', byType = {} }
    if roster then numbers[#numbers + 1] = roster.a end
    accounts[name] = account
  end
  return accounts[name]
end

-- Everything that is known about the events, read at once.
local items, eventKeys, rememberedKeys = {}, {}, {}
for i = FIRST, #ARGV, FIELDS do
  local id, type, rememberUntil, nonce, target, follows = string.match(ARGV[i + 1], HEAD)
  local digest, label = string.match(ARGV[i + 2], '^([^\n]*)\n([^\n]*)\n')
  local account = accountOf(ARGV[i])
  items[#items + 1] = {
    account = account, accountName = ARGV[i], id = id, type = type, rememberUntil = rememberUntil, nonce = nonce,
    target = target ~= '' and target or nil, follows = follows == '1', digest = digest, label = label, value = ARGV[i + 2],
  }
  eventKeys[#items] = account.a .. '/' .. id
  rememberedKeys[#items] = 'e/' .. id .. '/' .. ARGV[i]
end
local knownEvents = call('HMGET', EVENTS, unpack(eventKeys))
local knownIds = call('HMGET', REMEMBERED, unpack(rememberedKeys))
local books = {}
if #numbers > 0 then
  for i, book in ipairs(call('HMGET', BOOKS, unpack(numbers))) do
    local pending, kept = string.match(book or '', '^(%d+),(%d+)')
    books[numbers[i]] = { pending = tonumber(pending) or 0, kept = tonumber(kept) or 0 }
  end
end
local allPending = call('ZCARD', QUEUE) + call('ZCARD', LEASES)
-- If something else created a key of another type, the script has to fail before its first write.
call('ZCARD', LOG)

-- The webhooks of an account that get an event: their numbers, their short ids, and how many webhooks
-- the account has.
local function listReceivers(account, type, target)
  local known = not target and account.byType[type]
  if known then return known end
  local ws, shorts, all = {}, {}, 0
  local patterns = listPatterns(type)
  for w, status, short, types in string.gmatch(account.lines, '(%d+) (%a) (%S+) ([^\n]*)\n') do
    all = all + 1
    if receives({ id = short, status = status, types = types }, patterns, target) then
      ws[#ws + 1] = w
      shorts[#shorts + 1] = short
    end
  end
  known = { ws = ws, numbers = table.concat(ws, ';'), shorts = table.concat(shorts, ';'), all = all }
  if not target then account.byType[type] = known end
  return known
end

-- What is known about the id of an event: stored now or before, or remembered. Nil for a new one.
local seen = {}

local function findKnown(place)
  local known = seen[rememberedKeys[place]]
  if known then return known end
  local nonce, receivers, digest = string.match(knownEvents[place] or '', '^%x+,%d+,%d+,([^,]*),([^,\n]*)\n([^\n]*)\n')
  if nonce then return { nonce = nonce, receivers = receivers, digest = digest } end
  if knownEvents[place] then error('a stored event cannot be read') end
  local expiresAt, by, went, of = string.match(knownIds[place] or '', '^(%d+)\n([^\n]*)\n([^\n]*)\n(.*)$')
  if expiresAt and tonumber(expiresAt) > now then return { nonce = by, receivers = went, digest = of } end
end

-- Orders grow with each event and later delivery of the partition. An order has 11 digits for the
-- time and 4 that count within it.
lastOrder = string.match(lastOrder or '', '^%x+$') or ''

local function nextOrder()
  local order = hex(now) .. '0000'
  if order <= lastOrder and #lastOrder == #order then
    local at, count = tonumber(string.sub(lastOrder, 1, 11), 16), tonumber(string.sub(lastOrder, 12), 16) + 1
    if count > 65535 then at, count = at + 1, 0 end
    order = hex(at) .. string.format('%04x', count)
  end
  lastOrder = order
  return order
end

-- What is to be written, and the webhooks that get something.
local values, entries, queued, records, progress, endedMembers, freeing, remembered = {}, {}, {}, {}, {}, {}, {}, {}
local ws = {}
bytes = tonumber(bytes) or 0

local function addTo(list, one, other)
  list[#list + 1] = one
  list[#list + 1] = other
end

-- Queues the deliveries of an event. Those of a test are in the log like later deliveries, so that
-- `recover` ignores them, and have a record of their own.
local function addDeliveries(item, group, order)
  local createdAt = tonumber(string.sub(order, 1, 11), 16)
  local queuedAt = math.max(0, findQueueTime(nil, createdAt, nil, createdAt))
  local suffix = '/' .. hex(queuedAt) .. '/' .. item.id
  local length = #queued
  for i, w in ipairs(group.ws) do
    queued[length + 2 * i - 1] = '0'
    queued[length + 2 * i] = w .. suffix
  end
  if not group.isListed then
    group.isListed = true
    for _, w in ipairs(group.ws) do
      if not ws[w] then
        ws[w] = true
        ws[#ws + 1] = w
      end
    end
  end
  if not item.target then return end
  local record = { 'p', order, '', '0', text(createdAt), '', '0', '0', '', '0', '', text(queuedAt), '1', '0', '' }
  for _, w in ipairs(group.ws) do addTo(records, w .. '/' .. item.id, table.concat(record, ',')) end
end

-- Starts the retention of an event that no webhook gets.
local function complete(item, key)
  local member = item.account.a .. '/' .. item.accountName
  addTo(progress, key, '0,' .. text(now) .. ',')
  addTo(endedMembers, '0', item.account.a .. '/' .. hex(now) .. '/' .. item.id)
  addTo(freeing, text(now + keepMs), member)
  local book = books[item.account.a]
  book.kept = book.kept + 1
  if book.kept > keepEvents then overdue[#overdue + 1] = member end
end

local function append(place)
  local item = items[place]
  local account = item.account
  local group = listReceivers(account, item.type, item.target)
  local known = findKnown(place)
  if known then
    local found = compareKnown(known.digest, item.digest)
    if found == 'conflict' then return found end
    -- The same call again, because its reply was lost: it did store the event.
    return (known.nonce == item.nonce and 'stored' or found) .. ' - ' .. known.receivers .. ' ' .. group.all
  end
  seen[rememberedKeys[place]] = { nonce = item.nonce, receivers = group.shorts, digest = item.digest }
  if not isKept(item.target ~= nil, #group.ws, group.all, keepMs) then
    local value = item.rememberUntil .. '\n' .. item.nonce .. '\n\n' .. item.digest
    remembered[#remembered + 1] = { rememberedKeys[place], value, item.rememberUntil }
    return 'stored -  ' .. group.all
  end
  local book = books[account.a]
  local bound = book.pending + #group.ws > mostPendingPerAccount and 'pendingPerAccount'
    or allPending + #group.ws > mostPending and 'pending'
  if bound then
    seen[rememberedKeys[place]] = nil
    return 'full ' .. bound
  end
  book.pending, allPending = book.pending + #group.ws, allPending + #group.ws
  book.isChanged = true
  local order = nextOrder()
  local value = order .. ',' .. #group.ws .. ',' .. item.rememberUntil .. ',' .. item.nonce .. ',' .. group.shorts .. '\n' .. item.value
  bytes = bytes + #value
  addTo(values, eventKeys[place], value)
  addTo(entries, '0', account.a .. '/' .. order .. '/' .. item.id .. '/' .. item.label .. '/' .. group.numbers .. (item.target and '.0' or ''))
  addDeliveries(item, group, order)
  if #group.ws == 0 then complete(item, eventKeys[place]) end
  return 'stored ' .. order .. ' ' .. group.shorts .. ' ' .. group.all
end

local lines, hasStopped = {}, false
for place, item in ipairs(items) do
  hasStopped = hasStopped and item.follows
  local line = hasStopped and 'skipped' or append(place)
  hasStopped = hasStopped or line == 'conflict' or string.sub(line, 1, 4) == 'full'
  lines[place] = line
end
result = table.concat(lines, '\n')
if claimer == 0 or string.find(lines[claimer], '^[cf]') then token = '' end

-- The first write is one that a full Redis refuses, so nothing is half stored.
if #values > 0 then
  call('HSET', EVENTS, unpack(values))
  call('ZADD', LOG, unpack(entries))
  callMany('ZADD', QUEUE, queued)
  callMany('HSET', DELIVERIES, records)
  callMany('HSET', PROGRESS, progress)
  callMany('ZADD', ENDED, endedMembers)
  if #freeing > 0 then call('ZADD', FREEING, 'NX', unpack(freeing)) end
  local set = {}
  for a, book in pairs(books) do
    if book.isChanged then addTo(set, a, text(book.pending) .. ',' .. text(book.kept)) end
  end
  call('HSET', BOOKS, unpack(set))
  mark = mark or ARGV[11]
  call('HSET', META, 'order', lastOrder, 'bytes', text(bytes), 'mark', mark)
  for from = 1, #ws, MOST_ARGUMENTS do offer({ unpack(ws, from, math.min(from + MOST_ARGUMENTS - 1, #ws)) }) end
end
for _, one in ipairs(remembered) do remember(one[1], one[2], tonumber(one[3])) end
-- Ids that are only remembered lead to no claim, so no `tidy` would free them.
if #remembered > 0 then forgetSome(2 * #remembered) end
