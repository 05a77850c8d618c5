-- How scripts call Redis, whatever they work on.

local call = redis.call

local MOST_ARGUMENTS = 1000

-- Calls `command key ...` as often as needed: Lua can pass a limited number of arguments.
local function callMany(command, key, arguments)
  for from = 1, #arguments, MOST_ARGUMENTS do
    call(command, key, unpack(arguments, from, math.min(from + MOST_ARGUMENTS - 1, #arguments)))
  end
end

-- The values of a hash by their fields; false if a field does not exist.
local function getFields(key, fields)
  local values = {}
  for from = 1, #fields, MOST_ARGUMENTS do
    local to = math.min(from + MOST_ARGUMENTS - 1, #fields)
    for i, value in ipairs(call('HMGET', key, unpack(fields, from, to))) do values[fields[from + i - 1]] = value end
  end
  return values
end
