-- The leasing half of the scripts of the common path: leases due deliveries, and replies.
--
-- Replies { result of the first half, when to claim again, the time that workers are notified of,
-- the work for tidy.lua, mark, parked members, number and record of webhooks in turn, claims }. The
-- work for tidy.lua: `l` for expired leases, `t` for data whose retention is over. The first claim
-- of a delivery is its reference alone; later ones add a blank and the line of the record. Nothing
-- here reads the body of an event: the claiming process does, unless it has it cached.

local TURN_MS, LAST_TURN_MS = 1 / 4096, 0.999

local claims, webhooks, parked = {}, {}, {}
local leasesAt = {}
local isTurnMoved = false
turn = tonumber(turn) or 0

local function give(w, claim)
  claims[#claims + 1] = claim
  local e = endpoints[w]
  if e.isGiven then return end
  e.isGiven = true
  webhooks[#webhooks + 1] = w
  webhooks[#webhooks + 1] = e.text
end

-- `p,order,started,step,due,ended,postponed,crashes,extra at,recovered,token,…`, and the lines of
-- its attempts.
local PENDING = '^p,(%x+,%d*,%d+,%d+,%d*,%d+,%d+,%d*,%d),[^,]*(,[^\n]*)(.*)$'

-- `l,order,started,step,due,ended,postponed,crashes,extra at,recovered,token,at,…`
local LEASED = '^(l,[^,]*,%d*,%d+,%d+,%d*,%d+,%d+,%d*,%d,([^,]*),(%d+),[^\n]*)'

-- The line of a record that this request has leased, and its time in the queue. The line is false
-- for a first lease. Nil if this request has not leased the record.
local function ownLease(ref, e, record)
  if string.match(record or '', '^l:([^,]*)') == token then
    local order = string.match(call('HGET', EVENTS, string.match(e.text, '^%d+') .. '/' .. (string.match(ref, '/(.+)$') or '')) or '', '^%x+') or '0'
    local createdAt = tonumber(string.sub(order, 1, 11), 16)
    return false, findQueueTime(nil, createdAt, nil, createdAt)
  end
  local line, own, at = string.match(record or '', LEASED)
  if own == token then return line, tonumber(at) end
end

-- For the same request again, because its reply was lost: gives the deliveries that it leased, in
-- the order they were due. Returns false if it leased nothing.
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

-- Removes up to `most` due members of an endpoint from the queue. Returns how many, and when the
-- next one is due.
local function takeFrom(w, most)
  local members = call('ZRANGEBYLEX', QUEUE, '[' .. w .. '/', '(' .. w .. '0', 'LIMIT', '0', text(most + 1))
  local count, headAt, last = 0, nil, nil
  local from = #w + 2
  for i, member in ipairs(members) do
    local at, suffixAt = string.match(member, '^(%x+)/()[^/.]', from)
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

-- Serves one turn of each endpoint that is due in a lane, while there is room. Returns how many
-- deliveries were taken.
local function serve(line, left)
  local ws = call('ZRANGEBYSCORE', line, '-inf', '(' .. text(now + 1), 'LIMIT', '0', text(left))
  if #ws == 0 then return 0 end
  fetchEndpoints(ws)
  local sum = 0
  local gone, placed = {}, {}
  for i, w in ipairs(ws) do
    local e = endpoints[w]
    if not e then parked[#parked + 1] = w end
    local free = e and freeSlots(e) or 0
    local most = e and math.min(divideRoom(left, #ws, i - 1), free, countLeft(perSecond, e.claimed, now)) or 0
    local count, headAt = 0, nil
    if most > 0 then
      count, headAt = takeFrom(w, most)
    elseif free > 0 then
      -- Its rate is used up. It is looked at when the next second begins.
      headAt = now
    end
    sum = sum + count
    if count > 0 then countLeases(e, count) end
    if count > 0 and perSecond then e.claimed, e.isRated = addClaimed(e.claimed, now, count), true end
    local at = e and findReadyTime(headAt, freeSlots(e), findOpenTime(perSecond, e.claimed, now))
    if not at then
      gone[#gone + 1] = w
    else
      if at <= now then
        turn, isTurnMoved = math.min(math.max(now, turn) + TURN_MS, now + LAST_TURN_MS), true
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

-- Writes the leases of the deliveries that were taken. A record that cannot be read gets an expired
-- lease, so that tidy.lua handles it. A later delivery, whose reference has a serial, always has a
-- record of its own.
local function leaseTaken()
  if #taken == 0 then return end
  local short, set = 'l:' .. token, {}
  for i, record in ipairs(call('HMGET', DELIVERIES, unpack(taken))) do
    local ref = taken[i]
    local w = string.match(ref, '^%d+')
    local value, line = not string.find(ref, '.', 1, true) and short or nil, nil
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
      overdue[#overdue + 1] = 'l'
    end
  end
  if #set > 0 then call('HSET', DELIVERIES, unpack(set)) end
  call('ZADD', LEASES, unpack(leasesAt))
end

local nextAt = ''

if token ~= '' then
  if not mark then
    mark = token
    call('HSET', META, 'mark', mark)
  end
  if call('ZRANGEBYSCORE', LEASES, '-inf', ARGV[1], 'LIMIT', '0', '1')[1] then overdue[#overdue + 1] = 'l' end
  if removalCount > 0 or call('ZRANGEBYSCORE', FREEING, '-inf', ARGV[1], 'LIMIT', '0', '1')[1]
    or call('ZRANGEBYSCORE', FORGETTING, '-inf', ARGV[1], 'LIMIT', '0', '1')[1] then
    overdue[#overdue + 1] = 't'
  end
  if not giveAgain() then
    for lane, room in pairs({ f = fastRoom, s = slowRoom }) do
      while room > 0 do
        local sum = serve(READY[lane], room)
        if sum == 0 then break end
        room = room - sum
      end
    end
    leaseTaken()
    if isTurnMoved then call('HSET', META, 'turn', string.format('%.17g', turn)) end
  end
end

saveLeaseCounts()
if perSecond then saveRates() end

if token ~= '' then
  for _, key in ipairs({ READY.f, READY.s, LEASES }) do
    local at = tonumber(call('ZRANGE', key, '0', '0', 'WITHSCORES')[2] or nil)
    if at and (nextAt == '' or at < nextAt) then nextAt = at end
  end
  if nextAt ~= '' then nextAt = text(math.floor(nextAt)) end
end
return {
  result, nextAt, notifyAt and text(notifyAt) or '', table.concat(overdue, '\n'), mark or '', parked, webhooks, table.concat(claims, '\n'),
}
