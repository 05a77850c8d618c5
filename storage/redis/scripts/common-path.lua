-- What the scripts of the common path share: the keys, and endpoints with their slots and lines. They
-- stand alone, without prelude.lua, whose closures cost more than all of this. What is not common is
-- left to the general scripts, which may be slow: the reply says so.
-- docs/redis.md describes the keys and the records. calls.lua goes before this file; what a script
-- is for follows it, and then exchange-claim.lua, which leases what is due and replies.
--
-- ARGV, after what every script takes: token (empty: lease nothing), lease until, room in the fast
-- lane, room in the slow lane; from ARGV[9] on what the script is for.

local META, ACCOUNTS, WEBHOOKS, IN_FLIGHT, QUEUE = KEYS[1], KEYS[2], KEYS[4], KEYS[5], KEYS[6]
local LEASES, NOTICES, EVENTS, PROGRESS = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local DELIVERIES, LOG, ENDED, FREEING = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local REMEMBERED, FORGETTING, REMOVALS, BOOKS, TALLIES = KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local LINES = { f = KEYS[7], s = KEYS[8] }

local now, perEndpoint = tonumber(ARGV[1]), tonumber(ARGV[2])
local keepMs, keepEvents = tonumber(ARGV[3]), tonumber(ARGV[4])
local token, leaseUntil, fastRoom, slowRoom = ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])

local HEAD_START_MS = 3600000

local function text(number) return string.format('%.0f', number) end

-- A key of another type, which somebody else made, has to be met before the first write: Redis does
-- not undo what a script did before it failed.
for _, key in ipairs({ WEBHOOKS, IN_FLIGHT, EVENTS, PROGRESS, DELIVERIES, BOOKS, TALLIES }) do call('HLEN', key) end
for _, key in ipairs({ QUEUE, LINES.f, LINES.s, LEASES, NOTICES, ENDED, FREEING, FORGETTING }) do call('ZCARD', key) end
local removalCount = call('HLEN', REMOVALS)
local endedCount, turn, mark, lastOrder, bytes = unpack(call('HMGET', META, 'ended', 'turn', 'mark', 'order', 'bytes'))

-- What the half before the leasing has to say.
local answer = ''
-- When something became due by this script: what sleepers have to know.
local hintAt
-- What tidy.lua has to do.
local overdue = {}

-- `A,account,status,generation,updated,failing since,warned,notice at,lane,window…⏎config`
local ENDPOINT = '^%d+,([^,]*),(%a),(%d+),%d+,()(%d*),%d*,%d*,(%a),(%d*)()'

local function readEndpoint(value, leased)
  local account, status, generation, healthAt, failingSince, lane, window, rest = string.match(value or '', ENDPOINT)
  return account and {
    text = value, account = account, status = status, generation = generation, healthAt = healthAt,
    failingSince = failingSince, lane = lane, window = window, rest = rest, leased = tonumber(leased) or 0,
  }
end

-- Each is read once; false where there is none that can be read.
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

-- The time in a member of the queue; nil where somebody else put it there.
local function timeOf(member) return tonumber(string.match(member, '^%d+/(%x+)/') or '', 16) end

-- Puts endpoints into their line, for whose queue or slots have changed. One that is due already keeps its place.
local function offer(ws)
  local fast, slow = call('ZMSCORE', LINES.f, unpack(ws)), call('ZMSCORE', LINES.s, unpack(ws))
  local standings, moved = {}, {}
  for i, w in ipairs(ws) do
    standings[w] = tonumber(fast[i] or slow[i] or nil)
    if not standings[w] or standings[w] >= now + 1 then moved[#moved + 1] = w end
  end
  fetchEndpoints(moved)
  for _, w in ipairs(moved) do
    local e, standing = endpoints[w], standings[w]
    if e then
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
