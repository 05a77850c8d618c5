-- What every script of a partition starts with, but those of the common path, after calls.lua: the keys of its partition, and how endpoints, deliveries and events are read and written.
-- docs/redis.md draws the keys and the texts. KEYS is the same list for all scripts (partition.ts); nothing here builds the name of a key.

local META, ACCOUNTS, IDS, WEBHOOKS, IN_FLIGHT = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local QUEUE, FAST, SLOW, LEASES, NOTICES = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local EVENTS, PROGRESS, DELIVERIES, LOG, ENDED = KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local FREEING, REMEMBERED, FORGETTING, REMOVALS, BOOKS = KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local TALLIES = KEYS[21]

local READY = { f = FAST, s = SLOW }

local now = tonumber(ARGV[1])
-- How many deliveries of an endpoint may be under lease, and how long and how many ended events of an account are kept.
local perEndpoint, keepMs, keepEvents = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local HEAD_START_MS = 3600000
local MAX_ATTEMPTS_KEPT = 50

-- Numbers from 1e14 on would lose digits in Lua's own conversion; times have 13.
local function text(number) return string.format('%.0f', number) end
-- Times sort as texts, so each has eleven digits: what is later than those can say is as late as they can say.
local LAST_TIME = tonumber('fffffffffff', 16)
local function hex(at) return string.format('%011x', math.min(math.max(0, at), LAST_TIME)) end

-- The line up to the first line feed, and the rest with it.
local function firstLine(value)
  local feed = string.find(value, '\n', 1, true)
  if not feed then return value, '' end
  return string.sub(value, 1, feed - 1), string.sub(value, feed)
end

-- Members that begin with `prefix` and a slash: '0' is the character after it.
local function below(prefix) return '[' .. prefix .. '/', '(' .. prefix .. '0' end

-- The first write of a script that must go on where Redis is full has to be one that a full Redis accepts.
local function goOnWhenFull() call('HDEL', META, '-') end

-- A script reads what it needs in few commands, changes it in memory, and writes it back in few commands: `flush` at its end. -------------------------

-- The fields of a hash, each read once. `read` makes a record of a text, `write` a text of a record.
local function records(key, read, write)
  local known, changed = {}, {}
  local self = {}

  function self.fetch(fields)
    local missing, asked = {}, {}
    for _, field in ipairs(fields) do
      if known[field] == nil and not asked[field] then
        asked[field] = true
        missing[#missing + 1] = field
      end
    end
    for field, value in pairs(fieldsOf(key, missing)) do known[field] = value and read(value) end
  end

  function self.get(field)
    if known[field] == nil then
      local value = call('HGET', key, field)
      known[field] = value and read(value)
    end
    return known[field] or nil
  end

  -- `value` is the text of it, where the caller has that already.
  function self.set(field, record, value) known[field], changed[field] = record, value or true end

  function self.delete(field) known[field], changed[field] = false, true end

  function self.flush()
    local set, deleted = {}, {}
    for field, value in pairs(changed) do
      local record = known[field]
      if record then
        set[#set + 1] = field
        set[#set + 1] = value == true and write(record) or value
      else
        deleted[#deleted + 1] = field
      end
    end
    callMany('HDEL', key, deleted)
    callMany('HSET', key, set)
    changed = {}
  end

  return self
end

-- The members of a sorted set that a script adds and removes; of one member the last counts.
local function members(key)
  local scores = {}
  local self = {}
  function self.add(member, score) scores[member] = score end
  function self.remove(member) scores[member] = false end
  function self.flush()
    local added, removed = {}, {}
    for member, score in pairs(scores) do
      if score then
        added[#added + 1] = score
        added[#added + 1] = member
      else
        removed[#removed + 1] = member
      end
    end
    callMany('ZREM', key, removed)
    callMany('ZADD', key, added)
    scores = {}
  end
  return self
end

local queue, leases, log, ended = members(QUEUE), members(LEASES), members(LOG), members(ENDED)
local notices, lines = members(NOTICES), { f = members(FAST), s = members(SLOW) }

-- Endpoints -----------------------------------------------------------------------------------------------------------

local ENDPOINT = '^(%d+),([^,]*),(%a),(%d+),(%d+),(%d*),(%d*),(%d*),(%a),(%d*)(.*)$'

local function readEndpoint(value)
  local line, config = firstLine(value)
  local a, account, status, generation, updatedAt, failingSince, warnedAt, noticeAt, lane, window, more =
    string.match(line, ENDPOINT)
  if not a then return nil end
  return {
    a = a, account = account, status = status, generation = generation, updatedAt = updatedAt,
    failingSince = failingSince, warnedAt = warnedAt, noticeAt = noticeAt, lane = lane, window = window,
    more = more, config = config,
  }
end

local function endpointText(e)
  return table.concat({
    e.a, e.account, e.status, e.generation, e.updatedAt, e.failingSince, e.warnedAt, e.noticeAt, e.lane, e.window,
  }, ',') .. e.more .. e.config
end

local endpoints = records(WEBHOOKS, readEndpoint, endpointText)
local inFlight = records(IN_FLIGHT, tonumber, text)

local function lease(w, by)
  local count = (inFlight.get(w) or 0) + by
  if count > 0 then inFlight.set(w, count) else inFlight.delete(w) end
end

local function setNotice(w, e, at)
  e.noticeAt = at
  endpoints.set(w, e)
  if at == '' then notices.remove(w) else notices.add(w, at) end
end

local function clearHealth(w, e)
  e.failingSince, e.warnedAt = '', ''
  setNotice(w, e, '')
end

local function moveToLane(w, e, lane)
  if e.lane == lane then return end
  call('ZREM', READY[e.lane], w)
  e.lane = lane
  endpoints.set(w, e)
end

-- The time of a change that users see: later than the one before, also within one millisecond.
local function touch(w, e)
  e.updatedAt = text(math.max(now, tonumber(e.updatedAt) + 1))
  endpoints.set(w, e)
end

-- Whose turn it is ----------------------------------------------------------------------------------------------------

local function freeSlots(w, e)
  local most = perEndpoint
  if e.window ~= '' then most = math.min(most, tonumber(e.window)) end
  return most - (inFlight.get(w) or 0)
end

local function queueHead(w)
  local from, to = below(w)
  return call('ZRANGEBYLEX', QUEUE, from, to, 'LIMIT', 0, 1)[1]
end

-- Nil where a member is none of ours.
local function timeOf(member) return tonumber(string.match(member, '^%d+/(%x+)/') or '', 16) end

-- The earliest time that something became due at in this script: what sleepers have to know.
local hintAt

local function hint(at)
  if not hintAt or at < hintAt then hintAt = at end
end

-- Endpoints about which anything has changed that says when they may be served.
local touched = {}

local offer

function offer(w, e, standing)
  local head = queueHead(w)
  if not head or freeSlots(w, e) <= 0 then
    if standing then lines[e.lane].remove(w) end
    return
  end
  local headAt = timeOf(head)
  if not headAt then
    call('ZREM', QUEUE, head)
    return offer(w, e, standing)
  end
  local at = math.max(headAt, now)
  lines[e.lane].add(w, text(at))
  if not standing or at < standing then hint(at) end
end

-- Says when the touched endpoints may be served next. One that is due already keeps its place in the line.
local function offerTouched()
  local ws = {}
  for w in pairs(touched) do ws[#ws + 1] = w end
  touched = {}
  if #ws == 0 then return end
  local fast, slow = call('ZMSCORE', FAST, unpack(ws)), call('ZMSCORE', SLOW, unpack(ws))
  for i, w in ipairs(ws) do
    local standing = tonumber(fast[i] or slow[i] or nil)
    if not standing or standing >= now + 1 then
      local e = endpoints.get(w)
      if e then offer(w, e, standing) end
    end
  end
  lines.f.flush()
  lines.s.flush()
end

-- Deliveries ----------------------------------------------------------------------------------------------------------
-- A reference is `<webhook>/<event>` or `<webhook>/<event>.<serial>`. One that was never claimed may have no record of its own: it is in the log and in the queue.

local DELIVERY =
  '^(%a),(%x+),(%d*),(%d+),(%d+),(%d*),(%d+),(%d+),(%d*),(%d),([^,]*),(%d+),(%d+),(%d+),([^,]*)(.*)$'

-- The two short forms name only what differs from a fresh delivery of their event.
local LEASED_FIRST, DELIVERED_FIRST = '^l:([^,]*)(.*)$', '^d:([^,]*),(%d+),(%d+),(%d+),(%d+),(%d+)(.*)$'

local function readShortDelivery(value)
  local token, leasedMore = string.match(value, LEASED_FIRST)
  if token then return { isShort = true, state = 'l', token = token, more = leasedMore } end
  local nonce, at, startedBefore, endedAfter, durationMs, status, more = string.match(value, DELIVERED_FIRST)
  if not nonce then return nil end
  return {
    isShort = true, state = 'd', token = nonce, seenAt = tonumber(at), startedBefore = tonumber(startedBefore),
    endedAfter = tonumber(endedAfter), durationMs = durationMs, status = status, more = more,
  }
end

local function readDelivery(value)
  if string.sub(value, 2, 2) == ':' then
    local short = readShortDelivery(value)
    if short then return short end
  end
  local line, attempts = firstLine(value)
  local state, order, startedAt, step, dueAt, endedAt, postponed, crashes, extraAt, recovered, token, at, receivers, tries, reason, more =
    string.match(line, DELIVERY)
  if not state then return { isBroken = true } end
  return {
    state = state, order = order, startedAt = startedAt, step = step, dueAt = dueAt, endedAt = endedAt,
    postponed = postponed, crashes = crashes, extraAt = extraAt, recovered = recovered, token = token,
    at = tonumber(at), receivers = tonumber(receivers), tries = tonumber(tries), reason = reason, more = more,
    attempts = attempts,
  }
end

local function deliveryLine(d)
  return table.concat({
    d.state, d.order, d.startedAt, d.step, d.dueAt, d.endedAt, d.postponed, d.crashes, d.extraAt, d.recovered, d.token,
    d.at, d.receivers, d.tries, d.reason,
  }, ',') .. d.more
end

local deliveries = records(DELIVERIES, readDelivery, function(d) return deliveryLine(d) .. d.attempts end)

-- As it is from its making until its first claim. The time it was made at is part of its order.
local function freshDelivery(order, receivers)
  local createdAt = tonumber(string.sub(order, 1, 11), 16)
  return {
    state = 'p', order = order, startedAt = '', step = '0', dueAt = text(createdAt), endedAt = '', postponed = '0',
    crashes = '0', extraAt = '', recovered = '0', token = '', at = math.max(0, createdAt - HEAD_START_MS),
    receivers = receivers, tries = 0, reason = '', more = '', attempts = '',
  }
end

-- A delivery of a short form as the general scripts work with it.
local function completed(d, order, receivers)
  if not d.isShort then return d end
  local all = freshDelivery(order, receivers)
  all.state, all.token, all.more = d.state, d.token, d.more
  if d.state == 'd' then
    all.startedAt, all.endedAt, all.tries = text(d.seenAt - d.startedBefore), text(d.seenAt + d.endedAfter), 1
    all.attempts = '\n{"at":' .. text(d.seenAt) .. ',"durationMs":' .. d.durationMs .. ',"step":0,"isExtra":false,"kind":"delivered","status":'
      .. d.status .. ',"code":"HTTP_' .. d.status .. '","excerpt":null}'
  end
  return all
end

local function isDone(d) return d.state == 'd' or d.state == 'w' end
local function isOpen(d) return d.state == 'p' or d.state == 'l' end

-- Nil for what is no reference.
local function webhookOf(ref) return string.match(ref, '^(%d+)/') end
local function suffixOf(ref) return string.match(ref, '/(.+)$') end
local function eventOf(ref) return string.match(ref, '/([^.]+)') end
local function queueMember(ref, at) return webhookOf(ref) .. '/' .. hex(at) .. '/' .. suffixOf(ref) end

-- Puts a pending delivery in its endpoint's queue. Only what is due already gets the head start of a first attempt, or it would come early.
local function enqueue(ref, d)
  local at = tonumber(d.extraAt) or tonumber(d.dueAt)
  if d.startedAt == '' and at <= now then at = math.max(0, at - HEAD_START_MS) end
  d.state, d.at = 'p', at
  queue.add(queueMember(ref, at), 0)
  deliveries.set(ref, d)
  touched[webhookOf(ref)] = true
end

-- Events --------------------------------------------------------------------------------------------------------------

local EVENT = '^(%x+),(%d+),(%d+),([^,]*),([^,\n]*)'

-- The head of a stored event: its order, how many deliveries it was made with, until when its id is remembered, who stored it, and the webhooks it went to.
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
    type = string.sub(value, digestEnd + 1, typeEnd - 1),
  }
end

-- Those read by this script: deliveries of one event are mostly settled together, and its body comes with it. `freeEvent` removes its own.
local readEvents = {}

local function storedEvent(a, ek)
  local key = a .. '/' .. ek
  if not readEvents[key] then
    local value = call('HGET', EVENTS, key)
    readEvents[key] = value and readEvent(value)
  end
  return readEvents[key]
end

-- Orders grow with each event and later delivery of the partition: 11 digits of the time, 4 that count within it.
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

-- A delivery as it is now, and nil where there is none.
local function delivery(a, ref)
  local d = deliveries.get(ref)
  if d and not d.isShort then return d end
  if string.find(ref, '.', 1, true) then return nil end
  local event = storedEvent(a, eventOf(ref))
  if not event then return nil end
  if d then return completed(d, event.order, event.count) end
  local entry = call('ZRANGEBYLEX', LOG, '[' .. a .. '/' .. event.order .. '/', '(' .. a .. '/' .. event.order .. '0', 'LIMIT', 0, 1)[1]
  local receivers = entry and ';' .. string.match(entry, '[^/]*$') .. ';'
  if not receivers or not string.find(receivers, ';' .. webhookOf(ref) .. ';', 1, true) then return nil end
  return freshDelivery(event.order, event.count)
end

-- The deliveries of an entry of the log, by their references and their webhooks.
local function deliveriesIn(ek, receivers)
  local refs = {}
  for w, serial in string.gmatch(receivers, '(%d+)(%.?%d*)') do
    refs[w .. '/' .. ek .. (serial == '.0' and '' or serial)] = w
  end
  return refs
end

-- `<pending deliveries>,<ended events>` of each account that has any.
local books = records(BOOKS, function(value)
  local pending, kept = string.match(value, '^(%d+),(%d+)')
  return { pending = tonumber(pending) or 0, ended = tonumber(kept) or 0 }
end, function(book) return text(book.pending) .. ',' .. text(book.ended) end)

local function book(a) return books.get(a) or { pending = 0, ended = 0 } end

local function count(a, what, by)
  local own = book(a)
  own[what] = math.max(0, own[what] + by)
  if own.pending == 0 and own.ended == 0 then books.delete(a) else books.set(a, own) end
end

-- `<delivered>,<failed>,<withheld>` of the ended deliveries kept of each webhook, then its last attempt, which only the other side reads.
local tallies = records(TALLIES, function(value)
  local delivered, failed, withheld, last = string.match(value, '^(%d+),(%d+),(%d+)\n(.*)$')
  return { d = tonumber(delivered) or 0, f = tonumber(failed) or 0, w = tonumber(withheld) or 0, last = last or '' }
end, function(tally) return text(tally.d) .. ',' .. text(tally.f) .. ',' .. text(tally.w) .. '\n' .. tally.last end)

local function tallyOf(w) return tallies.get(w) or { d = 0, f = 0, w = 0, last = '' } end

-- Counts a delivery that ended in a state, or does so no longer. What is left of a removed webhook is not counted.
local function tally(w, state, by)
  if not endpoints.get(w) then return end
  local own = tallyOf(w)
  if not own[state] then return end
  own[state] = math.max(0, own[state] + by)
  tallies.set(w, own)
end

local endedChange, byteChange = 0, 0

-- Writes what the parts above have kept in mind. Every script that changes something ends with it.
local function flush()
  deliveries.flush()
  queue.flush()
  leases.flush()
  log.flush()
  ended.flush()
  inFlight.flush()
  offerTouched()
  endpoints.flush()
  notices.flush()
  books.flush()
  tallies.flush()
  if endedChange ~= 0 then call('HINCRBY', META, 'ended', endedChange) end
  if byteChange ~= 0 then call('HINCRBY', META, 'bytes', text(byteChange)) end
  endedChange, byteChange = 0, 0
  if lastOrder then call('HSET', META, 'order', lastOrder) end
end
