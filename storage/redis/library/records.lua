-- Buffers between a function and the keys: it reads what it needs with few commands, changes it in
-- Lua's memory, and writes it back with few commands. `flush` of endpoints.lua ends it.

local buffers = {}

-- The fields of a hash, each read once.
local Hash = {}

-- Drops what the call before has read. Most buffers are empty, so that this costs next to nothing.
function Hash:clear()
  if next(self.texts) then self.texts = {} end
  if next(self.values) then self.values = {} end
  if next(self.changed) then self.changed = {} end
  self.isRead = false
end

-- Reads the fields that are not known yet, with one command.
function Hash:fetch(fields)
  local texts, missing, length = self.texts, {}, 0
  for i = 1, #fields do
    local field = fields[i]
    if texts[field] == nil then
      texts[field] = false
      length = length + 1
      missing[length] = field
    end
  end
  for from = 1, length, MAX_ARGUMENTS do
    local values =
      call('HMGET', keys[self.key], unpack(missing, from, math.min(from + MAX_ARGUMENTS - 1, length)))
    for i = 1, #values do texts[missing[from + i - 1]] = values[i] end
    self.isRead = true
  end
end

-- Returns the stored text; false if it is missing.
function Hash:text(field)
  if self.changed[field] == 'value' then return self.write(self.values[field]) end
  if self.texts[field] == nil then
    self.texts[field], self.isRead = call('HGET', keys[self.key], field), true
  end
  return self.texts[field]
end

-- Returns the decoded value; nil if it is missing or cannot be decoded.
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
function Hash:setText(field, value)
  self.texts[field], self.values[field], self.changed[field] = value, nil, 'text'
end
function Hash:delete(field) self:setText(field, false) end

-- Fails if a key that it would change has another type. A key that was read has the right one.
function Hash:check()
  if next(self.changed) and not self.isRead then call('HLEN', keys[self.key]) end
end

function Hash:flush()
  if not next(self.changed) then return end
  local set, length, deleted, texts = {}, 0, {}, self.texts
  for field, change in pairs(self.changed) do
    if change == 'value' then texts[field] = self.write(self.values[field]) end
    local value = texts[field]
    if value then
      set[length + 1], set[length + 2] = field, value
      length = length + 2
    else
      deleted[#deleted + 1] = field
    end
  end
  callMany('HDEL', keys[self.key], deleted)
  callMany('HSET', keys[self.key], set)
  self.changed = {}
end

-- Creates the buffer of a key. `read` decodes a stored text when it is needed, and `write` encodes the
-- value again. Redis has no metatables while it creates the library.
local function hash(key, read, write)
  local buffer = {
    key = key, read = read, write = write, texts = {}, values = {}, changed = {}, clear = Hash.clear,
    fetch = Hash.fetch, text = Hash.text, get = Hash.get, set = Hash.set, setText = Hash.setText,
    delete = Hash.delete, check = Hash.check, flush = Hash.flush, isRead = false,
  }
  buffers[#buffers + 1] = buffer
  return buffer
end

-- The members of a sorted set that a function adds and removes. The last change of a member wins.
local SortedSet = {}

function SortedSet:clear()
  if next(self.scores) then self.scores = {} end
end

function SortedSet:add(member, score) self.scores[member] = score end
function SortedSet:remove(member) self.scores[member] = false end

-- Drops what was to be changed.
function SortedSet:forget(member) self.scores[member] = nil end

function SortedSet:check()
  if next(self.scores) then call('ZCARD', keys[self.key]) end
end

function SortedSet:flush()
  if not next(self.scores) then return end
  local added, length, removed = {}, 0, {}
  for member, score in pairs(self.scores) do
    if score then
      added[length + 1], added[length + 2] = score, member
      length = length + 2
    else
      removed[#removed + 1] = member
    end
  end
  callMany('ZREM', keys[self.key], removed)
  if self.condition and length > 0 then
    call('ZADD', keys[self.key], self.condition, unpack(added))
  else
    callMany('ZADD', keys[self.key], added)
  end
  self.scores = {}
end

-- `condition`: of ZADD; nil for none.
local function sortedSet(key, condition)
  local buffer = {
    key = key, condition = condition, scores = {}, clear = SortedSet.clear, add = SortedSet.add,
    remove = SortedSet.remove, forget = SortedSet.forget, check = SortedSet.check, flush = SortedSet.flush,
  }
  buffers[#buffers + 1] = buffer
  return buffer
end

local queue, leases = sortedSet('queue'), sortedSet('leases')

local meta = hash('meta')
-- What is added to its counters at the end.
local metaAdded = { completed = 0, bytes = 0 }

local function addToMeta()
  for field, added in pairs(metaAdded) do
    if added ~= 0 then
      meta:setText(field, text(math.max(0, (tonumber(meta:text(field) or '') or 0) + added)))
    end
    metaAdded[field] = 0
  end
end
