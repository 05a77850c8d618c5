-- The basis of all functions: the keys and options of a call, and how Redis is called.
--
-- Redis creates this library once, so whatever is local here outlives a call: `begin` in define.lua
-- sets it for each one. While Redis creates the library, Lua's basic functions are missing.

local call
-- The keys of the call by their names, in the words of docs/redis.md: `keys.inFlight`. No function
-- builds the name of a key.
local keys = {}
local READY = { f = 'readyFast', s = 'readySlow' }
-- The options of the call, from JSON, and those that most functions need.
local options, now, perEndpoint, perSecond
-- The time of the call as a number and as the eleven digits of `hex`.
local nowText, nowHex

local MAX_ARGUMENTS = 1000

-- Calls `command key ...` as often as needed: Lua can pass a limited number of arguments.
local function callMany(command, key, arguments)
  for from = 1, #arguments, MAX_ARGUMENTS do
    call(command, key, unpack(arguments, from, math.min(from + MAX_ARGUMENTS - 1, #arguments)))
  end
end

-- Returns the values of a hash by their fields; false if a field does not exist.
local function getFields(key, fields)
  local values = {}
  for from = 1, #fields, MAX_ARGUMENTS do
    local to = math.min(from + MAX_ARGUMENTS - 1, #fields)
    for i, value in ipairs(call('HMGET', key, unpack(fields, from, to))) do
      values[fields[from + i - 1]] = value
    end
  end
  return values
end

-- Decodes a JSON object. JSON null becomes nil.
local function decode(value)
  local fields = cjson.decode(value)
  for name, field in pairs(fields) do
    if field == cjson.null then fields[name] = nil end
  end
  return fields
end

-- Numbers from 1e14 on would lose digits in Lua's own conversion; times have 13. Nil becomes ''.
local function text(number) return number and string.format('%.0f', number) or '' end

-- Times sort as strings, so each has eleven hexadecimal digits. Later times become the last one.
local LAST_TIME = 0xfffffffffff
local function hex(at) return string.format('%011x', math.min(math.max(0, at), LAST_TIME)) end

-- The time that an order begins with.
local function timeOf(order) return tonumber(string.sub(order, 1, 11), 16) end

-- The range of members that begin with `prefix` and a slash: '0' is the character after it.
local function below(prefix) return '[' .. prefix .. '/', '(' .. prefix .. '0' end

local function firstBelow(key, prefix)
  local from, to = below(prefix)
  return call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, 1)[1]
end

-- The last `limit` members below a prefix at most, after an order if there is one, oldest first.
local function listBelow(key, prefix, after, limit)
  local from, to = below(prefix)
  if after ~= '' then from = '[' .. prefix .. '/' .. after .. '0' end
  return call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, limit)
end

-- The command that tells the size of each key, but those of the content.
local SIZE = {
  accountCounts = 'HLEN', accountList = 'ZCARD', accounts = 'HLEN', completed = 'ZCARD', deliveries = 'HLEN',
  eventKeys = 'ZCARD', events = 'HLEN', expirations = 'ZCARD', failing = 'ZCARD',
  healthNotifications = 'ZCARD', ids = 'HLEN', inFlight = 'HLEN', leases = 'ZCARD', log = 'ZCARD',
  meta = 'HLEN', progress = 'HLEN', queue = 'ZCARD', rates = 'HLEN', readyFast = 'ZCARD', readySlow = 'ZCARD',
  remembered = 'HLEN', removals = 'HLEN', retention = 'ZCARD', webhookCounts = 'HLEN', webhooks = 'HLEN',
}

-- Redis does not undo the writes of a function that fails. If something else created a key of another
-- type, the function has to fail before its first write: `names` are the keys it has not read by then.
local function checkTypes(names)
  for i = 1, #names do call(SIZE[names[i]], keys[names[i]]) end
end

local function checkAllTypes()
  for name, command in pairs(SIZE) do call(command, keys[name]) end
end
