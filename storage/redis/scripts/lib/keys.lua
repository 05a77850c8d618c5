-- The keys and options of every script of a partition. docs/redis.md describes the keys. KEYS is the
-- same list for all scripts (partition.ts); no script builds the name of a key. ARGV[1] has the
-- options of the call as JSON; scripts name what they take in addition.

local META, ACCOUNTS, IDS, WEBHOOKS, IN_FLIGHT, QUEUE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local READY = { f = KEYS[7], s = KEYS[8] }
local LEASES, HEALTH, EVENTS, PROGRESS, DELIVERIES, LOG = KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local COMPLETED, RETENTION, REMEMBERED, EXPIRATIONS = KEYS[15], KEYS[16], KEYS[17], KEYS[18]
local REMOVALS, ACCOUNT_COUNTS, WEBHOOK_COUNTS, RATES = KEYS[19], KEYS[20], KEYS[21], KEYS[22]
local ACCOUNT_LIST, FAILING, EVENT_KEYS = KEYS[23], KEYS[24], KEYS[25]

local options = decode(ARGV[1])
local now, perEndpoint, perSecond = options.now, options.perEndpoint, options.perSecond

-- Numbers from 1e14 on would lose digits in Lua's own conversion; times have 13. Nil becomes ''.
local function text(number) return number and string.format('%.0f', number) or '' end

-- Times sort as strings, so each has eleven hexadecimal digits. Later times become the last one.
local LAST_TIME = tonumber('fffffffffff', 16)
local function hex(at) return string.format('%011x', math.min(math.max(0, at), LAST_TIME)) end

local nowText, nowHex = text(now), hex(now)

-- The time that an order begins with.
local function timeOf(order) return tonumber(string.sub(order, 1, 11), 16) end

-- The range of members that begin with `prefix` and a slash: '0' is the character after it.
local function below(prefix) return '[' .. prefix .. '/', '(' .. prefix .. '0' end

local function firstBelow(key, prefix)
  local from, to = below(prefix)
  return call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, 1)[1]
end

-- Redis over its maxmemory checks only the first write of a script. A script that must succeed then
-- begins with this write, which a full Redis accepts.
local function goOnWhenFull() call('HDEL', META, '-') end

-- Redis does not undo the writes of a script that fails. If something else created a key of another
-- type, the script has to fail before its first write. It names the keys that it has not read by then.
local function checkTypes(sortedSets, hashes)
  for _, key in ipairs(sortedSets) do call('ZCARD', key) end
  for _, key in ipairs(hashes) do call('HLEN', key) end
end
