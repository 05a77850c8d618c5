-- The common path of storing events: each with all its deliveries, or none of them. The first write
-- is one that a full Redis refuses, so nothing is half stored. Other cases are left to
-- append-general.lua: an id that is known, a bound that is exceeded, an event without subscribers.
-- This file follows common-path.lua and rosters.lua, and claim-due.lua follows it in the same
-- script.
--
-- ARGV from the ninth on: most pending, most pending of an account, a name for this data set where
-- it has none; then for each event its account, id, type, `remember until,nonce`,
-- `digest⏎label⏎payload`, and its label.
--
-- Replies { }, with nothing changed, if an event is not common. Otherwise replies as
-- claim-due.lua does: `result` has a line for each event: its order, the short ids of its
-- webhooks, and how many webhooks its account has, separated by blanks.

local FIRST, FIELDS = 12, 6
-- Lua can pass a limited number of arguments to one command.
local MOST_WEBHOOKS = 1000

local accounts, ws = {}, {}

local function accountOf(name)
  if accounts[name] == nil then
    local roster = readRoster(name)
    accounts[name] = roster and { a = roster.a, lines = roster.lines, byType = {} } or false
  end
  return accounts[name]
end

-- The webhooks of an account that subscribe to a type: their numbers, and their short ids. `all`:
-- how many webhooks the account has.
local function receiversOf(account, type)
  local known = account.byType[type]
  if known then return known end
  local own, shorts, all = {}, {}, 0
  local patterns = listPatterns(type)
  for w, status, short, types in string.gmatch(account.lines, '(%d+) (%a) (%S+) ([^\n]*)\n') do
    all = all + 1
    if receives({ id = short, status = status, types = types }, patterns) then
      own[#own + 1] = w
      shorts[#shorts + 1] = short
      if not ws[w] then
        ws[w] = true
        ws[#ws + 1] = w
      end
    end
  end
  known = { ws = own, numbers = table.concat(own, ';'), shorts = table.concat(shorts, ';'), all = all }
  account.byType[type] = known
  return known
end

-- Orders grow with each event and later delivery of the partition. An order has 11 digits for the
-- time and 4 that count within it.
local LAST_TIME = tonumber('fffffffffff', 16)
local function hex(at) return string.format('%011x', math.min(math.max(0, at), LAST_TIME)) end
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

-- Everything is read first. Until the first write, `return {}` leaves all keys unchanged.
local keys, ids, owners, groups = {}, {}, {}, {}
local isSeen = {}
local added, addedTo = 0, {}
for i = FIRST, #ARGV, FIELDS do
  local account = accountOf(ARGV[i])
  if not account then return {} end
  local group = receiversOf(account, ARGV[i + 2])
  local key = account.a .. '/' .. ARGV[i + 1]
  if #group.ws == 0 or isSeen[key] then return {} end
  isSeen[key] = true
  keys[#keys + 1] = key
  ids[#ids + 1] = 'e/' .. ARGV[i + 1] .. '/' .. ARGV[i]
  owners[#owners + 1] = account
  groups[#groups + 1] = group
  addedTo[account.a] = (addedTo[account.a] or 0) + #group.ws
  added = added + #group.ws
end
if #ws > MOST_WEBHOOKS then return {} end
for _, known in ipairs({ call('HMGET', EVENTS, unpack(keys)), call('HMGET', REMEMBERED, unpack(ids)) }) do
  for i = 1, #keys do
    if known[i] then return {} end
  end
end
if call('ZCARD', QUEUE) + call('ZCARD', LEASES) + added > tonumber(ARGV[9]) then return {} end
local numbers, books = {}, {}
for _, account in pairs(accounts) do numbers[#numbers + 1] = account.a end
for i, book in ipairs(call('HMGET', BOOKS, unpack(numbers))) do
  local a = numbers[i]
  local pending, kept = string.match(book or '', '^(%d+),(%d+)')
  pending = tonumber(pending or 0) + addedTo[a]
  if pending > tonumber(ARGV[10]) then return {} end
  books[2 * i - 1] = a
  books[2 * i] = text(pending) .. ',' .. (kept or '0')
end
-- If something else created a key of another type, the script has to fail before its first write.
call('ZCARD', LOG)

local values, entries, queued, lines = {}, {}, {}, {}
bytes = tonumber(bytes) or 0
for place, key in ipairs(keys) do
  local i = FIRST + (place - 1) * FIELDS
  local ek, group, order = ARGV[i + 1], groups[place], nextOrder()
  local value = order .. ',' .. text(#group.ws) .. ',' .. ARGV[i + 3] .. ',' .. group.shorts .. '\n' .. ARGV[i + 4]
  values[2 * place - 1] = key
  values[2 * place] = value
  bytes = bytes + #value
  entries[2 * place - 1] = '0'
  entries[2 * place] = owners[place].a .. '/' .. order .. '/' .. ek .. '/' .. ARGV[i + 5] .. '/' .. group.numbers
  local createdAt = tonumber(string.sub(order, 1, 11), 16)
  local suffix = '/' .. hex(findQueueTime(nil, createdAt, nil, createdAt)) .. '/' .. ek
  for _, w in ipairs(group.ws) do
    queued[#queued + 1] = '0'
    queued[#queued + 1] = w .. suffix
  end
  lines[place] = order .. ' ' .. group.shorts .. ' ' .. group.all
end
call('HSET', EVENTS, unpack(values))
call('ZADD', LOG, unpack(entries))
callMany('ZADD', QUEUE, queued)
call('HSET', BOOKS, unpack(books))
mark = mark or ARGV[11]
call('HSET', META, 'order', lastOrder, 'bytes', text(bytes), 'mark', mark)
offer(ws)
result = table.concat(lines, '\n')
