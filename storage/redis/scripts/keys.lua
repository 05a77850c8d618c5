-- The keys and settings that every general script of a partition starts with. It follows calls.lua.
-- docs/redis.md describes the keys and the records. KEYS is the same list for all scripts
-- (partition.ts); no script builds the name of a key. The scripts of the common path do not include
-- this file: they have common-path.lua.

local META, ACCOUNTS, IDS, WEBHOOKS, IN_FLIGHT = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local QUEUE, FAST, SLOW, LEASES, NOTICES = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local EVENTS, PROGRESS, DELIVERIES, LOG, ENDED = KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local FREEING, REMEMBERED, FORGETTING, REMOVALS, BOOKS = KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local TALLIES, RATES = KEYS[21], KEYS[22]

local READY = { f = FAST, s = SLOW }

local now = tonumber(ARGV[1])
-- How many deliveries of an endpoint may be leased at once and, if that is limited, claimed in a
-- second: `perEndpoint,perSecond`. Then how long and how many completed events of an account are kept.
local perEndpoint, perSecond = tonumber(ARGV[2]), nil
if not perEndpoint then
  perEndpoint, perSecond = string.match(ARGV[2], '^(%d+),(%d+)$')
  perEndpoint, perSecond = tonumber(perEndpoint), tonumber(perSecond)
end
local keepMs, keepEvents = tonumber(ARGV[3]), tonumber(ARGV[4])

-- Numbers from 1e14 on would lose digits in Lua's own conversion; times have 13.
local function text(number) return string.format('%.0f', number) end
-- Times sort as strings, so each has eleven hexadecimal digits. Later times become the last one.
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

-- Redis over its maxmemory checks only the first write of a script. A script that must succeed then
-- begins with this write, which a full Redis accepts.
local function goOnWhenFull() call('HDEL', META, '-') end
