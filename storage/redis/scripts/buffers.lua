-- Buffers between a script and the keys: a script reads what it needs with few commands, changes it
-- in Lua's memory, and writes it back with few commands. `flush` of counters.lua ends every such
-- script.

-- The fields of a hash, each read once. `read` decodes a stored text into a record, and `write`
-- encodes it again.
local function records(key, read, write)
  local known, changed = {}, {}
  local self = {}

  function self.fetch(fields)
    local missing, isRequested = {}, {}
    for _, field in ipairs(fields) do
      if known[field] == nil and not isRequested[field] then
        isRequested[field] = true
        missing[#missing + 1] = field
      end
    end
    for field, value in pairs(getFields(key, missing)) do known[field] = value and read(value) end
  end

  function self.get(field)
    if known[field] == nil then
      local value = call('HGET', key, field)
      known[field] = value and read(value)
    end
    return known[field] or nil
  end

  -- `value` is the encoded record, if the caller already has it.
  function self.set(field, record, value) known[field], changed[field] = record, value or true end

  function self.delete(field) known[field], changed[field] = false, true end

  function self.flush()
    local set, deleted = {}, {}
    for field, value in pairs(changed) do
      local record = known[field]
      if record then
        set[#set + 1] = field
        set[#set + 1] = value == true and write(record) or value
      else
        deleted[#deleted + 1] = field
      end
    end
    callMany('HDEL', key, deleted)
    callMany('HSET', key, set)
    changed = {}
  end

  return self
end

-- The members of a sorted set that a script adds and removes. The last change of a member wins.
local function members(key)
  local scores = {}
  local self = {}
  function self.add(member, score) scores[member] = score end
  function self.remove(member) scores[member] = false end
  function self.flush()
    local added, removed = {}, {}
    for member, score in pairs(scores) do
      if score then
        added[#added + 1] = score
        added[#added + 1] = member
      else
        removed[#removed + 1] = member
      end
    end
    callMany('ZREM', key, removed)
    callMany('ZADD', key, added)
    scores = {}
  end
  return self
end

local queue, leases, log, ended = members(QUEUE), members(LEASES), members(LOG), members(ENDED)
local notices, ready = members(NOTICES), { f = members(FAST), s = members(SLOW) }
