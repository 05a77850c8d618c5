-- The common path: records deliveries that were delivered at their first attempt, then leases what
-- is due. It stands alone, without prelude.lua, whose closures cost more than all of this. What is
-- not common is left to settle.lua and tidy.lua, which may be slow: the reply says so.
-- docs/redis.md describes the keys and the records. This file reads the arguments and the
-- endpoints; exchange-settle.lua and exchange-claim.lua follow it in the same script.
--
-- ARGV, after what every script takes: token (empty: lease nothing), lease until, room in the fast
-- lane, room in the slow lane, nonce; then how many deliveries, endpoints and accounts follow:
--   * of all deliveries, the reference and the new record in turn;
--   * of all deliveries, the record that each is expected to have;
--   * of each endpoint, its number, account, generation, how many of the deliveries are its own,
--     the lane that the last of them puts it in, and its last attempt;
--   * of each account, its number, its name, how many of the deliveries and how many events are its
--     own; then of each of these events its id, how many of the deliveries are its own, and how
--     many it was stored with.
--
-- Replies { places }, with nothing changed, where a delivery or an endpoint is not as expected: the
-- places of these deliveries, and of these endpoints after a `w`.
-- Else replies { '', when to claim again, the hint, what is left to tidy.lua, mark, what was
-- parked, number and text of webhooks in turn, claims }. What is left: `l` for leases that ran out,
-- `t` for what was kept long enough, `A/account` for an account that keeps too many events.
-- A claim is a reference alone where it is the first one of its delivery; else a blank and the line
-- of the record follow.

local call = redis.call
local META, WEBHOOKS, IN_FLIGHT, QUEUE = KEYS[1], KEYS[4], KEYS[5], KEYS[6]
local LEASES, NOTICES, EVENTS, PROGRESS = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local DELIVERIES, ENDED, FREEING, FORGETTING = KEYS[13], KEYS[15], KEYS[16], KEYS[18]
local REMOVALS, BOOKS, TALLIES = KEYS[19], KEYS[20], KEYS[21]
local LINES = { f = KEYS[7], s = KEYS[8] }

local now, perEndpoint = tonumber(ARGV[1]), tonumber(ARGV[2])
local keepMs, keepEvents = tonumber(ARGV[3]), tonumber(ARGV[4])
local token, leaseUntil, nonce = ARGV[5], ARGV[6], ARGV[9]
local deliveryCount, endpointCount, accountCount = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local FIRST = 13
local ENDPOINT_FIELDS, ACCOUNT_FIELDS, EVENT_FIELDS = 6, 4, 3

local function text(number) return string.format('%.0f', number) end

-- A key of another type, which somebody else made, has to be met before the first write: Redis does
-- not undo what a script did before it failed.
for _, key in ipairs({ WEBHOOKS, IN_FLIGHT, EVENTS, PROGRESS, DELIVERIES, BOOKS, TALLIES }) do call('HLEN', key) end
for _, key in ipairs({ QUEUE, LINES.f, LINES.s, LEASES, NOTICES, ENDED, FREEING, FORGETTING }) do call('ZCARD', key) end
local removalCount = call('HLEN', REMOVALS)
local endedCount, turn, mark = unpack(call('HMGET', META, 'ended', 'turn', 'mark'))

-- The first write has to be one that a full Redis accepts.
call('HDEL', META, '-')

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
