-- All reads of the webhook store. ARGV[5] names one: `webhook` by id, `webhooks` of an account
-- after a number, `event` of an account, `delivery`, `deliveries` of a webhook newest first,
-- `tally` of a webhook, `stats`.

local what = ARGV[5]

local function webhook(id)
  local w = call('HGET', IDS, id)
  return { w and call('HGET', WEBHOOKS, w) or '' }
end

local function webhooksOf(account, after, limit)
  local roster = readRoster(account)
  local ws = {}
  local isMore = false
  if roster then
    for w in string.gmatch(roster.lines, '(%d+) [^\n]*\n') do
      if tonumber(w) > after then
        isMore = #ws == limit
        if isMore then break end
        ws[#ws + 1] = w
      end
    end
  end
  if #ws == 0 then return { {}, '' } end
  return { call('HMGET', WEBHOOKS, unpack(ws)), isMore and ws[#ws] or '' }
end

local function eventById(account, ek)
  local roster = readRoster(account)
  return { roster and call('HGET', EVENTS, roster.a .. '/' .. ek) or '' }
end

local function row(ref, d, label) return { suffixOf(ref), label, deliveryLine(d) .. d.attempts } end

local function deliveryById(id, suffix)
  local w = call('HGET', IDS, id)
  local e = w and endpoints.get(w)
  if not e then return {} end
  local d = delivery(e.a, w .. '/' .. suffix)
  local event = d and not d.isBroken and storedEvent(e.a, eventOf('/' .. suffix))
  return event and row('/' .. suffix, d, event.label) or {}
end

-- The serial of webhook `w` among the receivers of an entry of the log: '' for the first delivery,
-- otherwise `.` and the serial. Nil if the webhook is not among them.
local function serialOf(w, receivers)
  if string.find(';' .. receivers .. ';', ';' .. w .. ';', 1, true) then return '' end
  return string.match(receivers, '^' .. w .. '(%.%d+)$')
end

local function countPending(w)
  local from, to = below(w)
  return call('ZLEXCOUNT', QUEUE, from, to) + (inFlight.get(w) or 0)
end

-- How many deliveries of a webhook are in the log: those in one state, or all if `state` is empty.
local function countInLog(w, state)
  local own = getTally(w)
  if state == 'delivered' then return own.d end
  if state == 'failed' then return own.f end
  if state == 'withheld' then return own.w end
  return countPending(w) + (state == 'pending' and 0 or own.d + own.f + own.w)
end

-- A page examines at most this many entries of the account's log, whatever it finds. This costs
-- Redis about as much as a page of 100 deliveries.
local MOST_EXAMINED = 500
local READ_TOGETHER = 50
local STATES = { pending = 'p', delivered = 'd', failed = 'f', withheld = 'w' }

-- Selects the entries from `first` to `last` that are about webhook `w` and of the type, with the
-- order of the entry before each.
local function candidatesIn(entries, first, last, w, type)
  local found, previous = {}, ''
  for i = first, last do
    local order, ek, label, receivers = string.match(entries[i], '^%d+/(%x+)/([^/]+)/([^/]*)/(.*)$')
    local serial = serialOf(w, receivers)
    if serial and (type == '' or typeOf(label) == type) then
      found[#found + 1] = { ref = w .. '/' .. ek .. (serial == '.0' and '' or serial), order = order, label = label, previous = previous }
    end
    previous = order
  end
  return found, previous
end

-- Reads the records of candidates that are in a state, or in any state if `wanted` is nil. A record
-- begins with the letter of its state. A delivery without a record was never claimed.
local function readMatching(candidates, wanted)
  local refs, found = {}, {}
  for i, candidate in ipairs(candidates) do refs[i] = candidate.ref end
  local values = getFields(DELIVERIES, refs)
  for _, candidate in ipairs(candidates) do
    local value = values[candidate.ref]
    local letter = value and string.sub(value, 1, 1) or 'p'
    if not wanted or wanted == (letter == 'l' and 'p' or letter) then
      candidate.delivery = value and expand(readDelivery(value), candidate.order, 0) or freshDelivery(candidate.order, 0)
      if not candidate.delivery.isBroken then found[#found + 1] = candidate end
    end
  end
  return found
end

-- Reads a page of up to `limit` deliveries; it may have fewer, or be empty. The second part of the
-- reply says where to continue, and is empty at the end of the log.
local function deliveriesOf(id, state, type, before, limit, since, untilAt)
  local w = call('HGET', IDS, id)
  local e = w and endpoints.get(w)
  if not e or countInLog(w, state) == 0 then return { {}, '' } end
  local from = before == '' and '(' .. e.a .. '0' or '(' .. e.a .. '/' .. before .. '/'
  if untilAt and (before == '' or hex(untilAt) < before) then from = '(' .. e.a .. '/' .. hex(untilAt) end
  local to = '[' .. e.a .. '/' .. (since and hex(since) or '')
  local entries = call('ZREVRANGEBYLEX', LOG, from, to, 'LIMIT', 0, MOST_EXAMINED)
  local rows, last = {}, ''
  for first = 1, #entries, READ_TOGETHER do
    local candidates, lastRead = candidatesIn(entries, first, math.min(first + READ_TOGETHER - 1, #entries), w, type)
    for _, match in ipairs(readMatching(candidates, STATES[state])) do
      if #rows == limit then return { rows, match.previous ~= '' and match.previous or last } end
      rows[#rows + 1] = row(match.ref, match.delivery, match.label)
    end
    last = lastRead
  end
  return { rows, #entries == MOST_EXAMINED and last or '' }
end

local function tallyFor(id)
  local w = call('HGET', IDS, id)
  if not w or not endpoints.get(w) then return {} end
  local own = getTally(w)
  local head, nextAt = queueHead(w), ''
  local headAt = head and timeOf(head)
  if headAt then
    local d = deliveries.get(w .. '/' .. string.match(head, '[^/]+$'))
    nextAt = d and not d.isBroken and (d.extraAt ~= '' and d.extraAt or d.dueAt) or text(headAt + HEAD_START_MS)
  end
  return { { countPending(w), own.d, own.f, own.w, own.t }, nextAt, own.last, own.recent, call('HGET', TALLIES, w .. '/h') or '' }
end

-- Counting more would hold up other calls for too long.
local COUNTED = 1000

local function countDue()
  local count = 0
  for _, line in pairs(READY) do
    for _, w in ipairs(call('ZRANGEBYSCORE', line, '-inf', '(' .. text(now + 1), 'LIMIT', 0, COUNTED)) do
      count = count + call('ZLEXCOUNT', QUEUE, '[' .. w .. '/', '(' .. w .. '/' .. hex(now) .. '0')
    end
  end
  return count
end

-- How many webhooks are ENABLED, DISABLED, failing, and failing with a warning sent. Empty if there
-- are too many to count.
local function countHealth()
  if call('HLEN', ACCOUNTS) > COUNTED or call('ZCARD', NOTICES) > COUNTED then return {} end
  local counts = { E = 0, D = 0, failing = 0, warned = 0 }
  for _, roster in ipairs(call('HVALS', ACCOUNTS)) do
    for status in string.gmatch(roster, '%d+ (%a) [^\n]*\n') do counts[status] = (counts[status] or 0) + 1 end
  end
  local ws = call('ZRANGE', NOTICES, 0, -1)
  endpoints.fetch(ws)
  for _, w in ipairs(ws) do
    local e = endpoints.get(w)
    local health = e and e.status == 'E' and e.failingSince ~= '' and (e.warnedAt ~= '' and 'warned' or 'failing')
    if health then counts[health] = counts[health] + 1 end
  end
  return { counts.E, counts.D, counts.failing, counts.warned }
end

if what == 'webhook' then return webhook(ARGV[6]) end
if what == 'webhooks' then return webhooksOf(ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])) end
if what == 'event' then return eventById(ARGV[6], ARGV[7]) end
if what == 'delivery' then return deliveryById(ARGV[6], ARGV[7]) end
if what == 'deliveries' then return deliveriesOf(ARGV[6], ARGV[7], ARGV[8], ARGV[9], tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])) end
if what == 'tally' then return tallyFor(ARGV[6]) end
local leased = call('ZCARD', LEASES)
return {
  call('HLEN', IDS), call('HLEN', EVENTS), call('ZCARD', QUEUE) + leased, leased,
  tonumber(call('HGET', META, 'ended') or 0), call('HGET', META, 'bytes') or '0', countDue(), countHealth(),
}
