-- Stores a change set as a whole, or replies with the conflict that prevents it. Also replies with
-- the nonce of the commit before, which tells the caller if the data is the set that it has seen.
--
-- ARGV: options (nonce, maxChanges to keep, basis: how many records it is based on), the lengths of
-- the texts, and the texts in one string. The texts are key and version of each record it is based on, then key,
-- expected version, head, columns and body of each write. An empty head removes the record.

local options = decode(ARGV[1])
local nonce = options.nonce

-- The same call again, because its reply was lost.
local known = call('ZSCORE', COMMITS, nonce)
if known then return { 'stored', tonumber(known) } end

local lengthOf, place = string.gmatch(ARGV[2], '%d+'), 1
local function nextText()
  local length = lengthOf()
  if not length then return nil end
  local from = place
  place = place + tonumber(length)
  return string.sub(ARGV[3], from, place - 1)
end

local expected, writes, keys = {}, {}, {}
for _ = 1, options.basis do
  local key = nextText()
  expected[#expected + 1] = { key = key, version = nextText() }
  keys[#keys + 1] = key
end
for key in nextText do
  local write = { key = key, version = nextText(), head = nextText(), columns = nextText(), body = nextText() }
  expected[#expected + 1] = write
  writes[#writes + 1] = write
  keys[#keys + 1] = key
end

local heads = getFields(HEADS, keys)
for _, record in ipairs(expected) do
  if versionOf(heads[record.key]) ~= record.version then return { 'conflict', record.key } end
end

local isWritten, wanted = {}, {}
for _, write in ipairs(writes) do
  isWritten[write.key] = true
  for name in namesOf(write.head) do wanted[#wanted + 1] = name end
end
local holders, claimed = getFields(NAMES, wanted), {}
for _, write in ipairs(writes) do
  for name in namesOf(write.head) do
    local holder = claimed[name] or holders[name]
    -- A record of the same commit releases the names that it does not claim again.
    local isFree = not holder or holder == write.key or (not claimed[name] and isWritten[holder])
    if not isFree then return { 'conflict', write.key, name } end
    claimed[name] = write.key
  end
end

-- The fields to set and to delete, by their hash.
local set = { [HEADS] = {}, [COLUMNS] = {}, [BODIES] = {}, [NAMES] = {} }
local gone = { [HEADS] = {}, [COLUMNS] = {}, [BODIES] = {}, [NAMES] = {} }
local function put(hash, field, value)
  local fields = set[hash]
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end
local function drop(hash, field) gone[hash][#gone[hash] + 1] = field end

local changed, isGrowing = {}, false
local last, lastNonce = lastCommit()
local sequence = string.format('%.0f', last + 1)
for _, write in ipairs(writes) do
  local key, before = write.key, heads[write.key]
  if isResident(before) or isResident(write.head) then
    changed[#changed + 1] = sequence
    changed[#changed + 1] = key
  end
  for name in namesOf(before) do
    if not claimed[name] then drop(NAMES, name) end
  end
  if write.head == '' then
    drop(HEADS, key)
    drop(BODIES, key)
  else
    isGrowing = true
    put(HEADS, key, write.head)
    put(BODIES, key, write.body)
  end
  if isResident(write.head) then
    put(COLUMNS, key, versionOf(write.head) .. '\n' .. write.columns)
  elseif isResident(before) then
    drop(COLUMNS, key)
  end
end
for name, key in pairs(claimed) do put(NAMES, name, key) end

-- A full Redis refuses a script at its first write if that write may grow. A commit that only
-- removes records begins with one that may not.
if not isGrowing then call('HDEL', META, '-') end
call('HSET', META, 'last', sequence .. ' ' .. nonce)
call('ZADD', COMMITS, sequence, nonce)
for hash, fields in pairs(gone) do callMany('HDEL', hash, fields) end
for hash, fields in pairs(set) do callMany('HSET', hash, fields) end
callMany('ZADD', CHANGES, changed)

-- Trims a sorted set to the changes that are kept. Returns the score of the last member that was removed.
local function trim(key)
  local over = call('ZCARD', key) - options.maxChanges
  if over <= 0 then return nil end
  local score = call('ZRANGE', key, over - 1, over - 1, 'WITHSCORES')[2]
  call('ZREMRANGEBYRANK', key, 0, over - 1)
  return score
end
trim(COMMITS)
local forgotten = trim(CHANGES)
if forgotten then call('HSET', META, 'forgotten', forgotten) end
return { 'stored', tonumber(sequence), lastNonce }
