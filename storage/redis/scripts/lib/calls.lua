-- How scripts call Redis, whatever they work on.

local call = redis.call

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
    for i, value in ipairs(call('HMGET', key, unpack(fields, from, to))) do values[fields[from + i - 1]] = value end
  end
  return values
end

-- Decodes a JSON object. What is null there is nil here.
local function decode(value)
  local fields = cjson.decode(value)
  for name, field in pairs(fields) do
    if field == cjson.null then fields[name] = nil end
  end
  return fields
end
