-- The settling half of settle-and-claim.lua. It compares everything first, then writes.

-- Updates the lane, slow start and health of an endpoint after successes under its present
-- generation.
local function reportSuccesses(w, e, count, lane)
  -- Most endpoints are as they were.
  if lane == e.lane and e.slowStart == '' and (e.status ~= 'E' or e.failingSince == '') then return end
  local change = applyReport({
    generation = e.generation, status = e.status, slowStart = tonumber(e.slowStart), failingSince = tonumber(e.failingSince),
  }, { ok = true, generation = e.generation, lane = lane }, count, perEndpoint)
  local health = string.match(e.text, '^%d*,%d*,%d*', e.healthAt)
  if change.health then
    call('ZREM', NOTICES, w)
    health = ',,'
  end
  if lane ~= e.lane then call('ZREM', READY[e.lane], w) end
  local slowStart = change.slowStart and text(change.slowStart) or ''
  local value = string.sub(e.text, 1, e.healthAt - 1) .. health .. ',' .. lane .. ',' .. slowStart .. string.sub(e.text, e.rest)
  call('HSET', WEBHOOKS, w, value)
  local leased = e.leased
  endpoints[w] = readEndpoint(value)
  endpoints[w].leased, endpoints[w].isCounted = leased, true
  endpoints[w].claimed = e.claimed
end

local function recordEndpoints(ws, from)
  local set = {}
  for i, value in ipairs(call('HMGET', TALLIES, unpack(ws))) do
    local w, at = ws[i], from + (i - 1) * ENDPOINT_FIELDS
    local e, count = endpoints[w], tonumber(ARGV[at + 3])
    countLeases(e, -count)
    if ARGV[at + 2] == e.generation then reportSuccesses(w, e, count, ARGV[at + 4]) end
    local delivered, others, recentAt = string.match(value or '', '^(%d+)(,[%d,]+)\n()')
    recentAt = recentAt and string.find(value, '\n', recentAt, true)
    local recent = recentAt and string.sub(value, recentAt + 1) or ''
    local durationMs, sketch = string.match(ARGV[at + 6], '^(%d+)(.*)$')
    set[#set + 1] = w
    set[#set + 1] = ((delivered or 0) + count) .. (others or ',0,0,0') .. '\n' .. ARGV[at + 5]
      .. '\n' .. addRecent(w, recent, count, 0, durationMs, sketch)
  end
  call('HSET', TALLIES, unpack(set))
  offer(ws)
end

local function noteExcess(a, account, kept)
  if kept > keepEvents then overdue[#overdue + 1] = a .. '/' .. account end
end

-- Completes the events that have no open delivery any more, and updates the books of their
-- accounts.
local function recordAccounts(from)
  local set, endedMembers, freeing, books = {}, {}, {}, {}
  local nowHex, nowText, freeAt = string.format('%011x', now), text(now), text(now + keepMs)
  local at = from
  for _ = 1, accountCount do
    local a, account, count, eventCount = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    at = at + ACCOUNT_FIELDS
    local keys = {}
    for i = 1, eventCount do keys[i] = a .. '/' .. ARGV[at + (i - 1) * EVENT_FIELDS] end
    local endedHere = 0
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
        endedHere = endedHere + 1
        set[#set + 1] = '0,' .. nowText .. ',' .. (later or '')
        endedMembers[#endedMembers + 1] = '0'
        endedMembers[#endedMembers + 1] = a .. '/' .. nowHex .. '/' .. ek
      else
        set[#set + 1] = text(open) .. ',,' .. (later or '')
      end
    end
    local pending, kept = string.match(call('HGET', BOOKS, a) or '', '^(%d+),(%d+)')
    pending, kept = math.max(0, tonumber(pending or 0) - count), tonumber(kept or 0) + endedHere
    books[#books + 1] = a
    books[#books + 1] = text(pending) .. ',' .. text(kept)
    if endedHere > 0 then
      freeing[#freeing + 1] = freeAt
      freeing[#freeing + 1] = a .. '/' .. account
    end
    noteExcess(a, account, kept)
  end
  call('HSET', PROGRESS, unpack(set))
  call('HSET', BOOKS, unpack(books))
  if #endedMembers > 0 then
    call('ZADD', ENDED, unpack(endedMembers))
    call('ZADD', FREEING, 'NX', unpack(freeing))
  end
end

if deliveryCount > 0 then
  local recordsEnd = FIRST + 2 * deliveryCount
  local endpointsAt = recordsEnd + deliveryCount
  local refs, ws, unmatched = {}, {}, {}
  for i = 1, deliveryCount do refs[i] = ARGV[FIRST + 2 * i - 2] end
  for i = 1, endpointCount do ws[i] = ARGV[endpointsAt + (i - 1) * ENDPOINT_FIELDS] end
  local records = call('HMGET', DELIVERIES, unpack(refs))
  -- The same call again, because its reply was lost: it did record them.
  local mine = 'd:' .. nonce .. ','
  local isAgain = records[1] and string.sub(records[1], 1, #mine) == mine
  local accountsAt = endpointsAt + endpointCount * ENDPOINT_FIELDS
  if isAgain then
    local at = accountsAt
    for _ = 1, accountCount do
      local kept = string.match(call('HGET', BOOKS, ARGV[at]) or '', ',(%d+)')
      noteExcess(ARGV[at], ARGV[at + 1], tonumber(kept or 0))
      at = at + ACCOUNT_FIELDS + EVENT_FIELDS * tonumber(ARGV[at + 3])
    end
  else
    fetchEndpoints(ws)
    for i = 1, deliveryCount do
      if records[i] ~= ARGV[recordsEnd + i - 1] then unmatched[#unmatched + 1] = text(i - 1) end
    end
    for i, w in ipairs(ws) do
      local e = endpoints[w]
      if not e or e.account ~= ARGV[endpointsAt + (i - 1) * ENDPOINT_FIELDS + 1] then unmatched[#unmatched + 1] = 'w' .. text(i - 1) end
    end
    if #unmatched > 0 then return { table.concat(unmatched, ' ') } end
    call('HSET', DELIVERIES, unpack(ARGV, FIRST, recordsEnd - 1))
    call('ZREM', LEASES, unpack(refs))
    call('HSET', META, 'ended', text((tonumber(endedCount) or 0) + deliveryCount))
    recordEndpoints(ws, endpointsAt)
    recordAccounts(accountsAt)
  end
end
