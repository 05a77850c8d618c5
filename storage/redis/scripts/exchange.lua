-- The common path, with nothing of the other scripts: records deliveries that were delivered at their first attempt, then leases what is due.
-- What is not common is left to the general scripts, settle and claim, which may be slow: the reply says where they have to be run.
--
-- ARGV: token (empty: lease nothing), lease until, room in the fast lane, room in the slow lane, nonce, then how many deliveries, endpoints and accounts
-- follow. Of the deliveries: reference and new record in turn, then the records that they are expected to have. Of each endpoint: its number, account,
-- generation, how many of the deliveries are its own, the lane that the last of them puts it in, and its last attempt. Of each account: its number, its
-- name, how many of the deliveries and how many events are its own; then of each of these events its id, how many of the deliveries are its own, and
-- how many it was stored with.
--
-- Replies { places }, having changed nothing, where a delivery or an endpoint is not as expected: the places of these deliveries, and of these endpoints
-- after a `w`. Else { '', when to claim again, the hint, the work left to `claim`, mark, what was parked, number and text of webhooks in turn, claims }.
-- A claim is a reference alone where it is the first one of its delivery; else a blank and the line of the record follow.

local call = redis.call
local META, WEBHOOKS, IN_FLIGHT, QUEUE = KEYS[1], KEYS[4], KEYS[5], KEYS[6]
local LEASES, NOTICES, ENDED, FREEING = KEYS[9], KEYS[10], KEYS[15], KEYS[16]
local EVENTS, PROGRESS, DELIVERIES = KEYS[11], KEYS[12], KEYS[13]
local FORGETTING, REMOVALS = KEYS[18], KEYS[19]
local BOOKS, TALLIES = KEYS[20], KEYS[21]
local LINES = { f = KEYS[7], s = KEYS[8] }

local now, perEndpoint, keepMs, keepEvents = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local token, leaseUntil, nonce = ARGV[5], ARGV[6], ARGV[9]
local deliveryCount, endpointCount, accountCount = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local FIRST = 13
local ENDPOINT_FIELDS, ACCOUNT_FIELDS, EVENT_FIELDS = 6, 4, 3
local TURN_MS, LAST_TURN_MS = 1 / 4096, 0.999
local HEAD_START_MS = 3600000

local function text(number) return string.format('%.0f', number) end

local hintAt
-- What the general claim has to do: `t` to tidy up, and the accounts that keep too many events as `A/account`.
local overdue = {}

-- Endpoints, each read once ---------------------------------------------------------------------------------------------

local ENDPOINT = '^%d+,([^,]*),(%a),(%d+),%d+,()(%d*),%d*,%d*,(%a),(%d*)()'

local function readEndpoint(value, leased)
  local account, status, generation, healthAt, failingSince, lane, window, rest = string.match(value or '', ENDPOINT)
  return account and {
    text = value, account = account, status = status, generation = generation, healthAt = healthAt,
    failingSince = failingSince, lane = lane, window = window, rest = rest, leased = tonumber(leased) or 0,
  }
end

local endpoints = {}

local function fetchEndpoints(ws)
  local unknown = {}
  for _, w in ipairs(ws) do
    if endpoints[w] == nil then unknown[#unknown + 1] = w end
  end
  if #unknown == 0 then return end
  local values, leased = call('HMGET', WEBHOOKS, unpack(unknown)), call('HMGET', IN_FLIGHT, unpack(unknown))
  for i, w in ipairs(unknown) do endpoints[w] = readEndpoint(values[i], leased[i]) or false end
end

local function freeSlots(e)
  local most = e.window == '' and perEndpoint or math.min(perEndpoint, tonumber(e.window))
  return most - e.leased
end

local function saveLeaseCounts()
  local set, deleted = {}, {}
  for w, e in pairs(endpoints) do
    if e and e.isCounted and e.leased > 0 then
      set[#set + 1] = w
      set[#set + 1] = text(e.leased)
    elseif e and e.isCounted then
      deleted[#deleted + 1] = w
    end
  end
  if #set > 0 then call('HSET', IN_FLIGHT, unpack(set)) end
  if #deleted > 0 then call('HDEL', IN_FLIGHT, unpack(deleted)) end
end

local function countLeases(e, by)
  e.leased, e.isCounted = math.max(0, e.leased + by), true
end

-- The time in a member of the queue; nil where somebody else put it there.
local function timeOf(member) return tonumber(string.match(member, '^%d+/(%x+)/') or '', 16) end

-- Recording what was delivered ------------------------------------------------------------------------------------------

-- Moves an endpoint's lane, slow start and health after successes under its present generation.
local function reportSuccesses(w, e, count, lane)
  local isRecovered = e.status == 'E' and e.failingSince ~= ''
  if lane == e.lane and e.window == '' and not isRecovered then return end
  local health = string.match(e.text, '^%d*,%d*,%d*', e.healthAt)
  if isRecovered then
    call('ZREM', NOTICES, w)
    health = ',,'
  end
  if lane ~= e.lane then call('ZREM', LINES[e.lane], w) end
  local window = e.window
  if window ~= '' then
    local opened = tonumber(window) + count
    window = opened >= perEndpoint and '' or text(opened)
  end
  local value = string.sub(e.text, 1, e.healthAt - 1) .. health .. ',' .. lane .. ',' .. window .. string.sub(e.text, e.rest)
  call('HSET', WEBHOOKS, w, value)
  local leased = e.leased
  endpoints[w] = readEndpoint(value)
  endpoints[w].leased, endpoints[w].isCounted = leased, true
end

-- Puts endpoints that had no slot free into their line again.
local function offer(ws)
  local fast, slow = call('ZMSCORE', LINES.f, unpack(ws)), call('ZMSCORE', LINES.s, unpack(ws))
  for i, w in ipairs(ws) do
    local standing = tonumber(fast[i] or slow[i] or nil)
    if not standing or standing >= now + 1 then
      local e = endpoints[w]
      local head = freeSlots(e) > 0 and call('ZRANGEBYLEX', QUEUE, '[' .. w .. '/', '(' .. w .. '0', 'LIMIT', '0', '1')[1]
      local at = head and math.max(timeOf(head) or 0, now)
      if at then
        call('ZADD', LINES[e.lane], text(at), w)
        if (not standing or at < standing) and (not hintAt or at < hintAt) then hintAt = at end
      elseif standing then
        call('ZREM', LINES[e.lane], w)
      end
    end
  end
end

local function recordEndpoints(ws, from)
  local set = {}
  for i, value in ipairs(call('HMGET', TALLIES, unpack(ws))) do
    local w, at = ws[i], from + (i - 1) * ENDPOINT_FIELDS
    local e, count = endpoints[w], tonumber(ARGV[at + 3])
    countLeases(e, -count)
    if ARGV[at + 2] == e.generation then reportSuccesses(w, e, count, ARGV[at + 4]) end
    local delivered, others = string.match(value or '', '^(%d+)(,%d+,%d+\n)')
    set[#set + 1] = w
    set[#set + 1] = text(tonumber(delivered or 0) + count) .. (others or ',0,0\n') .. ARGV[at + 5]
  end
  call('HSET', TALLIES, unpack(set))
  offer(ws)
end

local function noteCrowded(a, account, kept)
  if kept > keepEvents then overdue[#overdue + 1] = a .. '/' .. account end
end

-- Ends the events that have no open delivery any more, and counts in the books of their accounts.
local function recordAccounts(from)
  local set, endedMembers, freeing, books = {}, {}, {}, {}
  local nowHex, nowText, freeAt = string.format('%011x', now), text(now), text(now + keepMs)
  local at = from
  for _ = 1, accountCount do
    local a, account, count, eventCount = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    at = at + ACCOUNT_FIELDS
    local keys = {}
    for i = 1, eventCount do keys[i] = a .. '/' .. ARGV[at + (i - 1) * EVENT_FIELDS] end
    local endedCount = 0
    for i, progress in ipairs(call('HMGET', PROGRESS, unpack(keys))) do
      local ek, own, all = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
      at = at + EVENT_FIELDS
      local open, later = all, ''
      if progress then
        open, later = string.match(progress, '^(%d+),%d*,(.*)$')
        open = tonumber(open) or own
      end
      open = math.max(0, open - own)
      set[#set + 1] = keys[i]
      if open == 0 then
        endedCount = endedCount + 1
        set[#set + 1] = '0,' .. nowText .. ',' .. (later or '')
        endedMembers[#endedMembers + 1] = '0'
        endedMembers[#endedMembers + 1] = a .. '/' .. nowHex .. '/' .. ek
      else
        set[#set + 1] = text(open) .. ',,' .. (later or '')
      end
    end
    local pending, kept = string.match(call('HGET', BOOKS, a) or '', '^(%d+),(%d+)')
    pending, kept = math.max(0, tonumber(pending or 0) - count), tonumber(kept or 0) + endedCount
    books[#books + 1] = a
    books[#books + 1] = text(pending) .. ',' .. text(kept)
    if endedCount > 0 then
      freeing[#freeing + 1] = freeAt
      freeing[#freeing + 1] = a .. '/' .. account
    end
    noteCrowded(a, account, kept)
  end
  call('HSET', PROGRESS, unpack(set))
  call('HSET', BOOKS, unpack(books))
  if #endedMembers > 0 then
    call('ZADD', ENDED, unpack(endedMembers))
    call('ZADD', FREEING, 'NX', unpack(freeing))
  end
end

-- The first write has to be one that a full Redis accepts.
call('HDEL', META, '-')

if deliveryCount > 0 then
  local recordsEnd = FIRST + 2 * deliveryCount
  local endpointsAt = recordsEnd + deliveryCount
  local refs, ws, odd = {}, {}, {}
  for i = 1, deliveryCount do refs[i] = ARGV[FIRST + 2 * i - 2] end
  for i = 1, endpointCount do ws[i] = ARGV[endpointsAt + (i - 1) * ENDPOINT_FIELDS] end
  local records = call('HMGET', DELIVERIES, unpack(refs))
  -- The same call once more, since its answer was lost: it did record them.
  local mine = 'd:' .. nonce .. ','
  local isAgain = records[1] and string.sub(records[1], 1, #mine) == mine
  local accountsAt = endpointsAt + endpointCount * ENDPOINT_FIELDS
  if isAgain then
    local at = accountsAt
    for _ = 1, accountCount do
      local kept = string.match(call('HGET', BOOKS, ARGV[at]) or '', ',(%d+)')
      noteCrowded(ARGV[at], ARGV[at + 1], tonumber(kept or 0))
      at = at + ACCOUNT_FIELDS + EVENT_FIELDS * tonumber(ARGV[at + 3])
    end
  else
    fetchEndpoints(ws)
    for i = 1, deliveryCount do
      if records[i] ~= ARGV[recordsEnd + i - 1] then odd[#odd + 1] = text(i - 1) end
    end
    for i, w in ipairs(ws) do
      local e = endpoints[w]
      if not e or e.account ~= ARGV[endpointsAt + (i - 1) * ENDPOINT_FIELDS + 1] then odd[#odd + 1] = 'w' .. text(i - 1) end
    end
    if #odd > 0 then return { table.concat(odd, ' ') } end
    call('HSET', DELIVERIES, unpack(ARGV, FIRST, recordsEnd - 1))
    call('ZREM', LEASES, unpack(refs))
    call('HINCRBY', META, 'ended', ARGV[10])
    recordEndpoints(ws, endpointsAt)
    recordAccounts(accountsAt)
  end
end

-- Leasing what is due ---------------------------------------------------------------------------------------------------

local claims, webhooks, parked = {}, {}, {}
local leasesAt = {}
local turn, mark

local function give(w, claim)
  claims[#claims + 1] = claim
  local e = endpoints[w]
  if e.isGiven then return end
  e.isGiven = true
  webhooks[#webhooks + 1] = w
  webhooks[#webhooks + 1] = e.text
end

-- `p,order,started,step,due,ended,postponed,crashes,extra at,recovered,token,…`, and the lines of its attempts.
local PENDING = '^p,(%x+,%d*,%d+,%d+,%d*,%d+,%d+,%d*,%d),[^,]*(,[^\n]*)(.*)$'

-- `l,order,started,step,due,ended,postponed,crashes,extra at,recovered,token,at,…`
local LEASED = '^(l,[^,]*,%d*,%d+,%d+,%d*,%d+,%d+,%d*,%d,([^,]*),(%d+),[^\n]*)'

-- The line of a record that this request leased and its time in the queue; false where it leased it for the first time; nil where it did not.
local function ownLease(ref, e, record)
  if string.match(record or '', '^l:([^,]*)') == token then
    local order = string.match(call('HGET', EVENTS, string.match(e.text, '^%d+') .. '/' .. string.match(ref, '/(.+)$')) or '', '^%x+') or '0'
    return false, tonumber(string.sub(order, 1, 11), 16) - HEAD_START_MS
  end
  local line, own, at = string.match(record or '', LEASED)
  if own == token then return line, tonumber(at) end
end

-- The same request once more, since its answer was lost: gives what it leased, in the order it was due. Returns false where it leased nothing.
local function giveAgain()
  local refs = call('ZRANGEBYSCORE', LEASES, leaseUntil, leaseUntil, 'LIMIT', '0', '1000')
  if #refs == 0 then return false end
  local held = {}
  for i, record in ipairs(call('HMGET', DELIVERIES, unpack(refs))) do
    local w = string.match(refs[i], '^(%d+)/')
    if w then fetchEndpoints({ w }) end
    local line, at
    if endpoints[w] then line, at = ownLease(refs[i], endpoints[w], record) end
    if at then held[#held + 1] = { at = at, w = w, claim = line and refs[i] .. ' ' .. line or refs[i] } end
  end
  table.sort(held, function(one, other) return one.at < other.at or one.at == other.at and one.claim < other.claim end)
  for _, item in ipairs(held) do give(item.w, item.claim) end
  return #held > 0
end

local taken = {}

-- Takes up to `most` due members of an endpoint out of the queue. Returns how many, and when the next one is due.
local function takeFrom(w, most)
  local members = call('ZRANGEBYLEX', QUEUE, '[' .. w .. '/', '(' .. w .. '0', 'LIMIT', '0', text(most + 1))
  local count, headAt, last = 0, nil, nil
  local from = #w + 2
  for i, member in ipairs(members) do
    local at, suffixAt = string.match(member, '^(%x+)/()', from)
    at = at and tonumber(at, 16)
    if at and (i > most or at > now) then
      headAt = at
      break
    end
    last = member
    if at then
      count = count + 1
      taken[#taken + 1] = w .. '/' .. string.sub(member, suffixAt)
    else
      parked[#parked + 1] = member
    end
  end
  if last then call('ZREMRANGEBYLEX', QUEUE, '[' .. members[1], '[' .. last) end
  return count, headAt
end

-- One turn of each endpoint that is due in a lane, as far as there is room; returns how much was taken.
local function serve(line, left)
  local ws = call('ZRANGEBYSCORE', line, '-inf', '(' .. text(now + 1), 'LIMIT', '0', text(left))
  if #ws == 0 then return 0 end
  fetchEndpoints(ws)
  local share, sum = math.ceil(left / #ws), 0
  local gone, placed = {}, {}
  for _, w in ipairs(ws) do
    -- Who gets nothing keeps its place, and is among the first next time.
    if sum >= left then break end
    local e = endpoints[w]
    if not e then parked[#parked + 1] = w end
    local most = e and math.max(0, math.min(left - sum, share, freeSlots(e))) or 0
    local count, headAt = 0, nil
    if most > 0 then count, headAt = takeFrom(w, most) end
    sum = sum + count
    if count > 0 then countLeases(e, count) end
    if not headAt or freeSlots(e) <= 0 then
      gone[#gone + 1] = w
    else
      local at = headAt
      if headAt <= now then
        turn = math.min(math.max(now, turn) + TURN_MS, now + LAST_TURN_MS)
        at = turn
      end
      placed[#placed + 1] = string.format('%.17g', at)
      placed[#placed + 1] = w
    end
  end
  if #gone > 0 then call('ZREM', line, unpack(gone)) end
  if #placed > 0 then call('ZADD', line, unpack(placed)) end
  return sum
end

-- Writes the leases of what was taken. What cannot be read gets one that has run out, for the general claim to look at.
local function leaseTaken()
  if #taken == 0 then return end
  local short, set = 'l:' .. token, {}
  for i, record in ipairs(call('HMGET', DELIVERIES, unpack(taken))) do
    local ref = taken[i]
    local w = string.match(ref, '^%d+')
    local value, line = short, nil
    if record then
      local kept, rest, attempts = string.match(record, PENDING)
      line = kept and 'l,' .. kept .. ',' .. token .. rest
      value = line and line .. attempts
    end
    leasesAt[#leasesAt + 1] = value and leaseUntil or '0'
    leasesAt[#leasesAt + 1] = ref
    if value then
      set[#set + 1] = ref
      set[#set + 1] = value
      give(w, line and ref .. ' ' .. line or ref)
    else
      overdue[#overdue + 1] = 't'
    end
  end
  if #set > 0 then call('HSET', DELIVERIES, unpack(set)) end
  call('ZADD', LEASES, unpack(leasesAt))
end

local nextAt = ''

if token ~= '' then
  turn, mark = unpack(call('HMGET', META, 'turn', 'mark'))
  turn = tonumber(turn) or 0
  if not mark then
    mark = token
    call('HSET', META, 'mark', mark)
  end
  if call('ZRANGEBYSCORE', LEASES, '-inf', ARGV[1], 'LIMIT', '0', '1')[1] or call('ZRANGEBYSCORE', FREEING, '-inf', ARGV[1], 'LIMIT', '0', '1')[1]
    or call('ZRANGEBYSCORE', FORGETTING, '-inf', ARGV[1], 'LIMIT', '0', '1')[1] or call('HLEN', REMOVALS) > 0 then
    overdue[#overdue + 1] = 't'
  end
  if not giveAgain() then
    for lane, room in pairs({ f = tonumber(ARGV[7]), s = tonumber(ARGV[8]) }) do
      while room > 0 do
        local sum = serve(LINES[lane], room)
        if sum == 0 then break end
        room = room - sum
      end
    end
    leaseTaken()
    call('HSET', META, 'turn', string.format('%.17g', turn))
  end
end

saveLeaseCounts()

if token ~= '' then
  for _, key in ipairs({ LINES.f, LINES.s, LEASES }) do
    local at = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or nil)
    if at and (nextAt == '' or at < nextAt) then nextAt = at end
  end
  if nextAt ~= '' then nextAt = text(math.floor(nextAt)) end
end
return {
  '', nextAt, hintAt and text(hintAt) or '', table.concat(overdue, '\n'), mark or '', parked, webhooks, table.concat(claims, '\n'),
}
