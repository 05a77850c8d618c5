-- Leases due deliveries. Options: token, leaseUntil, fast and slow: the room in each lane. `append` can
-- claim, too.
--
-- Replies { when to claim again, the time that workers are notified of, the work for `tidy`, name of
-- the data set, members that cannot be read, number and record of each webhook, claims }. The work
-- is `leases` for expired ones, `retention` for data whose retention is over, and `A/account` for too
-- many completed events. The claim of a delivery without a record is its reference alone; others add
-- a blank and the line of the record. The claiming process reads the body of an event, unless it has
-- it cached.

local TURN_MS, LAST_TURN_MS = 1 / 4096, 0.999

-- What a claim has taken from the queue, and what its reply names. `claim` begins with empty ones.
local taken, takenFrom, unreadable, webhooks, claims, work, isListed

local function addClaim(webhook, entry)
  claims[#claims + 1] = entry
  if isListed[webhook] then return end
  isListed[webhook] = true
  webhooks[#webhooks + 1] = webhook
  webhooks[#webhooks + 1] = endpoints:text(webhook)
end

-- The fields of a pending record after its token, and its attempts.
local PENDING = '^p,[^,\n]*(,%d*,%d*,%d*,%d*,%d*,%d*,%d*,%d*,[^,\n]*,%d+[^\n]*)(.*)$'

-- Gives the deliveries that the same request has leased, in the order they were due, because its
-- reply was lost. Returns false if it leased nothing.
local function claimAgain(token, leaseUntil)
  local held = {}
  local refs = call('ZRANGEBYSCORE', keys.leases, leaseUntil, leaseUntil, 'LIMIT', 0, 1000)
  deliveries:fetch(refs)
  for _, ref in ipairs(refs) do
    local webhook, d = webhookOf(ref), deliveries:get(ref)
    local endpoint = webhook and endpoints:get(webhook)
    if endpoint and d and d.state == 'l' and d.token == token then
      local value = deliveries:text(ref)
      local entry = value == 'l,' .. token and ref or ref .. ' ' .. string.match(value, '^[^\n]*')
      held[#held + 1] = {
        at = queueMember(endpoint.accountNumber, webhook .. '/' .. suffixOf(ref), d), webhook = webhook,
        entry = entry,
      }
    end
  end
  local function at(item) return string.match(item.at, '/(%x+)/') end
  table.sort(held, function(one, other)
    return at(one) < at(other) or at(one) == at(other) and one.entry < other.entry
  end)
  for _, item in ipairs(held) do addClaim(item.webhook, item.entry) end
  return #held > 0
end

-- Removes up to `limit` due members of an endpoint from the queue. Returns how many, and when the
-- next one is due.
local function takeFrom(webhook, limit)
  local from, to = below(webhook)
  local members = call('ZRANGEBYLEX', keys.queue, from, to, 'LIMIT', 0, limit + 1)
  local added, headAt, last = 0, nil, nil
  local timeAt = #webhook + 2
  for i, member in ipairs(members) do
    local at, suffixAt = string.match(member, '^(%x+)/()[^/.]', timeAt)
    at = at and tonumber(at, 16)
    if at and (i > limit or at > now) then
      headAt = at
      break
    end
    last = member
    if at then
      added = added + 1
      local place = #taken + 1
      taken[place], takenFrom[place] = webhook .. '/' .. string.sub(member, suffixAt), webhook
    else
      unreadable[#unreadable + 1] = member
    end
  end
  if last then call('ZREMRANGEBYLEX', keys.queue, '[' .. members[1], '[' .. last) end
  return added, headAt
end

-- Returns the next place in line behind the endpoints that are ready already.
local function nextTurn()
  local turn = math.min(math.max(now, tonumber(meta:text('turn') or '') or 0) + TURN_MS, now + LAST_TURN_MS)
  meta:setText('turn', string.format('%.17g', turn))
  return turn
end

-- Serves one turn of an endpoint with a share of the room. Returns how many deliveries were taken,
-- and when it may be served next.
local function serveEndpoint(webhook, endpoint, share)
  local free, limitPerSecond = freeSlots(webhook, endpoint), getPerSecond(endpoint)
  local limit = math.min(share, free, countLeft(limitPerSecond, getRate(webhook, endpoint), now))
  -- With its rate used up, it is looked at when the next second begins.
  local added, headAt = 0, free > 0 and now or nil
  if limit > 0 then added, headAt = takeFrom(webhook, limit) end
  if added > 0 then
    changeInFlight(webhook, added)
    if limitPerSecond then rates:set(webhook, addClaimed(getRate(webhook, endpoint), now, added)) end
  end
  local openTime = findOpenTime(limitPerSecond, getRate(webhook, endpoint), now)
  return added, findReadyTime(headAt, freeSlots(webhook, endpoint), openTime)
end

-- Serves one turn of each endpoint that is due in a lane, while there is room. Returns how many
-- deliveries were taken.
local function serve(lane, room)
  local due = call('ZRANGEBYSCORE', lane, '-inf', '(' .. text(now + 1), 'LIMIT', 0, room)
  fetchEndpoints(due)
  local sum, gone, placed = 0, {}, {}
  for i, webhook in ipairs(due) do
    local endpoint, added, at = endpoints:get(webhook), 0, nil
    if endpoint then
      added, at = serveEndpoint(webhook, endpoint, divideRoom(room, #due, i - 1))
    else
      unreadable[#unreadable + 1] = webhook
    end
    sum = sum + added
    if not at then
      gone[#gone + 1] = webhook
    else
      placed[#placed + 1] = string.format('%.17g', at <= now and nextTurn() or at)
      placed[#placed + 1] = webhook
    end
  end
  callMany('ZREM', lane, gone)
  callMany('ZADD', lane, placed)
  return sum
end

-- Leases what was taken. A record that cannot be read gets an expired lease, so that `tidy` handles
-- it. A later delivery, whose reference has a serial, always has a record. Returns when the first lease
-- ends; nil without one.
local function leaseTaken(token, leaseUntil)
  deliveries:fetch(taken)
  local firstEnd = taken[1] and tonumber(leaseUntil)
  local first = 'l,' .. token
  for i, ref in ipairs(taken) do
    local record, value, entry = deliveries:text(ref), nil, ref
    if record then
      local rest, attempts = string.match(record, PENDING)
      if rest then
        local line = 'l,' .. token .. rest
        value, entry = line .. attempts, ref .. ' ' .. line
      end
    elseif not string.find(ref, '.', 1, true) then
      value = first
    end
    if value then
      deliveries:setText(ref, value)
      leases:add(ref, leaseUntil)
      addClaim(takenFrom[i], entry)
    else
      leases:add(ref, 0)
      work[#work + 1] = 'leases'
      firstEnd = 0
    end
  end
  return firstEnd
end

-- Due endpoints have a fraction for their turn.
local function isDue(key)
  return call('ZRANGEBYSCORE', key, '-inf', '(' .. text(now + 1), 'LIMIT', 0, 1)[1]
end

-- The score of the first member of a sorted set; nil if it is empty.
local function firstScore(key) return tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or nil) end

local UNREAD = { 'deliveries', 'rates' }

-- Leases what is due in both lanes. Returns when the first lease ends; nil without one.
local function leaseDue(lease, leaseUntil)
  -- Both lanes are read before one is changed. Most often nothing is due.
  local isFastDue, isSlowDue = isDue(keys.readyFast), isDue(keys.readySlow)
  if not isFastDue and not isSlowDue then return end
  checkTypes(UNREAD)
  for name, room in pairs({ f = lease.fast, s = lease.slow }) do
    while room > 0 do
      local sum = serve(keys[READY[name]], room)
      if sum == 0 then break end
      room = room - sum
    end
  end
  return leaseTaken(lease.token, leaseUntil)
end

-- `lease`: the options of the claim; nil leases nothing. `found`: work that the caller has found.
function claim(lease, found)
  taken, takenFrom, unreadable, webhooks, claims, work, isListed = {}, {}, {}, {}, {}, found or {}, {}
  local nextAt
  if lease then
    if not meta:text('dataSet') then meta:setText('dataSet', lease.token) end
    local leaseEnd, leaseUntil = firstScore(keys.leases), text(lease.leaseUntil)
    if leaseEnd and leaseEnd <= now then work[#work + 1] = 'leases' end
    if call('HLEN', keys.removals) > 0 or isDue(keys.retention) or isDue(keys.expirations) then
      work[#work + 1] = 'retention'
    end
    local claimedEnd = not claimAgain(lease.token, leaseUntil) and leaseDue(lease, leaseUntil) or nil
    flush()
    nextAt = firstScore(keys.readyFast)
    for _, at in pairs({ firstScore(keys.readySlow), leaseEnd, claimedEnd }) do
      nextAt = math.min(nextAt or at, at)
    end
  end
  return {
    nextAt and text(math.floor(nextAt)) or '', text(notifyAt), work, meta:text('dataSet') or '', unreadable,
    webhooks, table.concat(claims, '\n'),
  }
end

define('claim', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  meta:fetch({ 'dataSet', 'turn' })
  return claim(options)
end)
