-- Buffers between a script and the keys: a script reads what it needs with few commands, changes it
-- in Lua's memory, and writes it back with few commands. `flush` of completion.lua ends it.

-- The fields of a hash, each read once.
local Hash = {}
Hash.__index = Hash

-- `read` decodes a stored text when it is needed, and `write` encodes the value again.
local function hash(key, read, write)
  return setmetatable({ key = key, read = read, write = write, texts = {}, values = {}, changed = {} }, Hash)
end

-- Reads the fields that are not known yet, with one command.
function Hash:fetch(fields)
  local missing = {}
  for _, field in ipairs(fields) do
    if self.texts[field] == nil then
      self.texts[field] = false
      missing[#missing + 1] = field
    end
  end
  for field, value in pairs(getFields(self.key, missing)) do self.texts[field] = value end
end

-- Returns the stored text; false if there is none.
function Hash:text(field)
  if self.changed[field] == 'value' then return self.write(self.values[field]) end
  if self.texts[field] == nil then self.texts[field] = call('HGET', self.key, field) end
  return self.texts[field]
end

-- Returns the decoded value; nil if there is none, or if it cannot be decoded.
function Hash:get(field)
  local value = self.values[field]
  if value == nil then
    local stored = self:text(field)
    value = stored and self.read(stored) or false
    self.values[field] = value
  end
  return value or nil
end

function Hash:set(field, value) self.values[field], self.changed[field] = value, 'value' end
function Hash:setText(field, value) self.texts[field], self.values[field], self.changed[field] = value, nil, 'text' end
function Hash:delete(field) self:setText(field, false) end

function Hash:flush()
  if not next(self.changed) then return end
  local set, deleted = {}, {}
  for field in pairs(self.changed) do
    local value = self:text(field)
    self.texts[field] = value
    if value then
      set[#set + 1] = field
      set[#set + 1] = value
    else
      deleted[#deleted + 1] = field
    end
  end
  callMany('HDEL', self.key, deleted)
  callMany('HSET', self.key, set)
  self.changed = {}
end

-- The members of a sorted set that a script adds and removes. The last change of a member wins.
local SortedSet = {}
SortedSet.__index = SortedSet

local function sortedSet(key) return setmetatable({ key = key, scores = {} }, SortedSet) end

function SortedSet:add(member, score) self.scores[member] = score end
function SortedSet:remove(member) self.scores[member] = false end

function SortedSet:flush()
  if not next(self.scores) then return end
  local added, removed = {}, {}
  for member, score in pairs(self.scores) do
    if score then
      added[#added + 1] = score
      added[#added + 1] = member
    else
      removed[#removed + 1] = member
    end
  end
  callMany('ZREM', self.key, removed)
  callMany('ZADD', self.key, added)
  self.scores = {}
end

local queue, leases, log, completed, health = sortedSet(QUEUE), sortedSet(LEASES), sortedSet(LOG), sortedSet(COMPLETED), sortedSet(HEALTH)
local function keepText(value) return value end

local meta, inFlight = hash(META, keepText), hash(IN_FLIGHT, tonumber, text)

local function addToMeta(field, by) meta:setText(field, text(math.max(0, (tonumber(meta:text(field) or '') or 0) + by))) end
