-- Shared by the scripts of the common path, `append` and `settle-and-claim`: the keys, and endpoints
-- with their free slots and turns. These scripts do without the general scripts' files, because creating
-- their closures costs more than everything here. Cases that are not common are left to the general
-- scripts, which may be slow: the reply says so.
--
-- docs/redis.md describes the keys and the records. calls.lua comes before this file. The file of
-- the script itself follows it, then claim-due.lua, which leases due deliveries and replies.
--
-- ARGV, after the arguments of every script: token (empty: lease nothing), lease until, room in the
-- fast lane, room in the slow lane. The arguments of the script itself start at ARGV[9].

local META, ACCOUNTS, WEBHOOKS, IN_FLIGHT, QUEUE = KEYS[1], KEYS[2], KEYS[4], KEYS[5], KEYS[6]
local LEASES, NOTICES, EVENTS, PROGRESS = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local DELIVERIES, LOG, ENDED, FREEING = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local REMEMBERED, FORGETTING, REMOVALS, BOOKS, TALLIES = KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local RATES = KEYS[22]
local READY = { f = KEYS[7], s = KEYS[8] }

local now, perEndpoint, perSecond = tonumber(ARGV[1]), tonumber(ARGV[2]), nil
-- With a limit of the rate, the second argument is `perEndpoint,perSecond`.
if not perEndpoint then
  perEndpoint, perSecond = string.match(ARGV[2], '^(%d+),(%d+)$')
  perEndpoint, perSecond = tonumber(perEndpoint), tonumber(perSecond)
end
local keepMs, keepEvents = tonumber(ARGV[3]), tonumber(ARGV[4])
local token, leaseUntil, fastRoom, slowRoom = ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])

local function text(number) return string.format('%.0f', number) end
local LAST_TIME = tonumber('fffffffffff', 16)
local function hex(at) return string.format('%011x', math.min(math.max(0, at), LAST_TIME)) end

-- If something else created a key of another type, the script has to fail before its first write:
-- Redis does not undo the writes of a script that fails.
for _, key in ipairs({ WEBHOOKS, IN_FLIGHT, EVENTS, PROGRESS, DELIVERIES, BOOKS, TALLIES }) do call('HLEN', key) end
for _, key in ipairs({ QUEUE, READY.f, READY.s, LEASES, NOTICES, ENDED, FREEING, FORGETTING }) do call('ZCARD', key) end
if perSecond then call('HLEN', RATES) end
local removalCount = call('HLEN', REMOVALS)
local endedCount, turn, mark, lastOrder, bytes = unpack(call('HMGET', META, 'ended', 'turn', 'mark', 'order', 'bytes'))

-- The result of the script's own half, before the leasing.
local result = ''
-- The earliest time at which this script made something due: the reply notifies sleeping workers.
local notifyAt
-- The work that this script found for tidy.lua.
local overdue = {}

-- `A,account,status,generation,updated,failing since,warned,notice at,lane,slow start…⏎config`
local ENDPOINT = '^%d+,([^,]*),(%a),(%d+),%d+,()(%d*),%d*,%d*,(%a),(%d*)()'

local function readEndpoint(value, leased)
  local account, status, generation, healthAt, failingSince, lane, slowStart, rest = string.match(value or '', ENDPOINT)
  return account and {
    text = value, account = account, status = status, generation = generation, healthAt = healthAt,
    failingSince = failingSince, lane = lane, slowStart = slowStart, rest = rest, leased = tonumber(leased) or 0,
  }
end

-- Endpoints by number, each read once; false if one is missing or cannot be read.
local endpoints = {}

-- Reads how many deliveries of each endpoint were claimed in a second.
local function fetchRates(ws)
  for i, value in ipairs(call('HMGET', RATES, unpack(ws))) do
    local e = endpoints[ws[i]]
    local second, count = string.match(value or '', '^(%d+),(%d+)$')
    if e and second then e.claimed = { second = tonumber(second), count = tonumber(count) } end
  end
end

local function fetchEndpoints(ws)
  local unknown = {}
  for _, w in ipairs(ws) do
    if endpoints[w] == nil then unknown[#unknown + 1] = w end
  end
  if #unknown == 0 then return end
  local values, leased = call('HMGET', WEBHOOKS, unpack(unknown)), call('HMGET', IN_FLIGHT, unpack(unknown))
  for i, w in ipairs(unknown) do endpoints[w] = readEndpoint(values[i], leased[i]) or false end
  if perSecond then fetchRates(unknown) end
end

local function freeSlots(e) return countFreeSlots(tonumber(e.slowStart), e.leased, perEndpoint) end

local function countLeases(e, by)
  e.leased, e.isCounted = math.max(0, e.leased + by), true
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

local function saveRates()
  local set = {}
  for w, e in pairs(endpoints) do
    if e and e.isRated then
      set[#set + 1] = w
      set[#set + 1] = text(e.claimed.second) .. ',' .. text(e.claimed.count)
    end
  end
  if #set > 0 then call('HSET', RATES, unpack(set)) end
end

-- The time in a score of the ready ones, which has a fraction for the turn. Nil without a score.
local function toReadyTime(score) return score and math.floor(tonumber(score)) or nil end

-- The time in a member of the queue. Nil if something else put the member there.
local function timeOf(member) return tonumber(string.match(member, '^%d+/(%x+)/') or '', 16) end

-- Works out when endpoints may be served next, after their queue or slots have changed.
local function offer(ws)
  local fast, slow = call('ZMSCORE', READY.f, unpack(ws)), call('ZMSCORE', READY.s, unpack(ws))
  local readyTimes, moved = {}, {}
  for i, w in ipairs(ws) do
    readyTimes[w] = toReadyTime(fast[i] or slow[i])
    if not keepsTurn(readyTimes[w], now) then moved[#moved + 1] = w end
  end
  fetchEndpoints(moved)
  for _, w in ipairs(moved) do
    local e, readyAt = endpoints[w], readyTimes[w]
    if e then
      local free = freeSlots(e)
      local head = free > 0 and call('ZRANGEBYLEX', QUEUE, '[' .. w .. '/', '(' .. w .. '0', 'LIMIT', '0', '1')[1]
      local at = findReadyTime(head and (timeOf(head) or 0), free, findOpenTime(perSecond, e.claimed, now))
      if at then
        call('ZADD', READY[e.lane], text(at), w)
        if isEarlier(at, readyAt) and isEarlier(at, notifyAt) then notifyAt = at end
      elseif readyAt then
        call('ZREM', READY[e.lane], w)
      end
    end
  end
end
