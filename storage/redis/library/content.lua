-- The content of a site. docs/redis.md describes its keys and records.

-- Bounds of one call: changed records, besides the rest of a commit; and whole records, in bytes.
local MAX_CHANGES_READ, MAX_COMMITTED, MAX_BYTES_READ, READ_TOGETHER = 500, 10000, 1048576, 10

-- The sequence of the last commit, and the nonce that names it.
local function lastCommit()
  local sequence, nonce = string.match(call('HGET', keys.meta, 'last') or '0 ', '^(%d+) (.*)$')
  return tonumber(sequence), nonce
end

local function versionOf(head) return head and string.match(head, '^%d+') or '0' end

local function isResident(head) return head and string.find(head, '^%d+,r') ~= nil end

-- Iterates over the names that a record holds.
local function namesOf(head) return string.gmatch(head or '', '\n([^\n]*)') end

-- Allocates consecutive ids. Options: kind, count, nonce. Replies with the first id.
define('contentAllocate', CONTENT_KEYS, MAY_GROW, function()
  local last, first, by = string.match(call('HGET', keys.ids, options.kind) or '0,0,', '^(%d+),(%d+),(.*)$')
  -- The same call again, because its reply was lost. If another call came between, this one gets
  -- other ids.
  if by == options.nonce then return tonumber(first) end
  first = tonumber(last) + 1
  local allocated = { text(tonumber(last) + options.count), text(first), options.nonce }
  call('HSET', keys.ids, options.kind, table.concat(allocated, ','))
  return first
end)

-- Lists the records that changed after a commit, each once. Options: since, the sequence of the commit,
-- and nonce, its nonce or '' if the caller does not know it.
--
-- Replies with the sequence and nonce of the last commit that the reply covers, `1` if later ones
-- follow, then key and columns in turn. Replies `reload` if the changes are not known.
define('contentChanges', CONTENT_KEYS, READS, function()
  local sequence, last = lastCommit()
  local since, forgotten = options.since, tonumber(call('HGET', keys.meta, 'forgotten') or 0)
  if since > sequence or since < forgotten then return 'reload' end
  -- The data may not be the set that the caller has seen: it was emptied and filled again, or
  -- restored from an older state.
  if options.nonce ~= '' and tonumber(call('ZSCORE', keys.commits, options.nonce) or -1) ~= since then
    return 'reload'
  end

  local changed =
    call('ZRANGEBYSCORE', keys.changes, '(' .. text(since), '+inf', 'LIMIT', 0, MAX_CHANGES_READ)
  local isMore = #changed == MAX_CHANGES_READ
  if isMore then
    -- A page ends with a whole commit.
    local covered = call('ZSCORE', keys.changes, changed[#changed])
    local isListed = {}
    for _, key in ipairs(changed) do isListed[key] = true end
    for _, key in ipairs(call('ZRANGEBYSCORE', keys.changes, covered, covered, 'LIMIT', 0, MAX_COMMITTED)) do
      if not isListed[key] then changed[#changed + 1] = key end
    end
    sequence, last =
      tonumber(covered), call('ZRANGEBYSCORE', keys.commits, covered, covered, 'LIMIT', 0, 1)[1] or ''
  end
  local columns, missing = getFields(keys.columns, changed), {}
  for _, key in ipairs(changed) do
    if not columns[key] then missing[#missing + 1] = key end
  end
  local heads = getFields(keys.heads, missing)
  local reply = { sequence, last, isMore and 1 or 0 }
  for _, key in ipairs(changed) do
    reply[#reply + 1] = key
    reply[#reply + 1] = columns[key] or versionOf(heads[key])
  end
  return reply
end)

-- Reads the texts of a commit. Returns the versions that it expects, and its writes.
local function readCommit(lengths, texts)
  local lengthOf, place = string.gmatch(lengths, '%d+'), 1
  local function nextText()
    local length = lengthOf()
    if not length then return nil end
    local from = place
    place = place + tonumber(length)
    return string.sub(texts, from, place - 1)
  end
  local expected, writes = {}, {}
  for _ = 1, options.basis do expected[#expected + 1] = { key = nextText(), version = nextText() } end
  for key in nextText do
    local write = {
      key = key, version = nextText(), head = nextText(), columns = nextText(), body = nextText(),
    }
    expected[#expected + 1] = write
    writes[#writes + 1] = write
  end
  return expected, writes
end

-- The keys that will hold the names of the writes. Or nil, and the conflict.
local function claimNames(writes)
  local isWritten, wanted = {}, {}
  for _, write in ipairs(writes) do
    isWritten[write.key] = true
    for name in namesOf(write.head) do wanted[#wanted + 1] = name end
  end
  local holders, claimed = getFields(keys.names, wanted), {}
  for _, write in ipairs(writes) do
    for name in namesOf(write.head) do
      local holder = claimed[name] or holders[name]
      -- A record of the same commit releases the names that it does not claim again.
      local isFree = not holder or holder == write.key or (not claimed[name] and isWritten[holder])
      if not isFree then return nil, { 'conflict', write.key, name } end
      claimed[name] = write.key
    end
  end
  return claimed
end

-- Writes the records with few commands.
local function writeAll(writes, heads, claimed)
  -- The fields to set and to delete, by their hash.
  local set = { heads = {}, columns = {}, bodies = {}, names = {} }
  local gone = { heads = {}, columns = {}, bodies = {}, names = {} }
  local function put(hash, field, value)
    local fields = set[hash]
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  local function drop(hash, field) gone[hash][#gone[hash] + 1] = field end
  for _, write in ipairs(writes) do
    local key, before = write.key, heads[write.key]
    for name in namesOf(before) do
      if not claimed[name] then drop('names', name) end
    end
    if write.head == '' then
      drop('heads', key)
      drop('bodies', key)
    else
      put('heads', key, write.head)
      put('bodies', key, write.body)
    end
    if isResident(write.head) then
      put('columns', key, versionOf(write.head) .. '\n' .. write.columns)
    elseif isResident(before) then
      drop('columns', key)
    end
  end
  for name, key in pairs(claimed) do put('names', name, key) end
  for hash, fields in pairs(gone) do callMany('HDEL', keys[hash], fields) end
  for hash, fields in pairs(set) do callMany('HSET', keys[hash], fields) end
end

-- Trims a sorted set to the changes that are kept. Returns the score of the last member that was removed.
local function trim(key)
  local over = call('ZCARD', key) - options.maxChanges
  if over <= 0 then return nil end
  local score = call('ZRANGE', key, over - 1, over - 1, 'WITHSCORES')[2]
  call('ZREMRANGEBYRANK', key, 0, over - 1)
  return score
end

-- Stores a change set as a whole, or replies with the conflict that prevents it. Also replies with
-- the nonce of the commit before, which tells the caller if the data is the set that it has seen.
--
-- Options: nonce; maxChanges, to keep; basis, how many records it is based on. Two items: the lengths of
-- the texts, and the texts in one string. They are key and version of each record it is based on, then
-- key, expected version, head, columns and body of each write. An empty head removes the record.
local function commit(arguments)
  local nonce = options.nonce
  -- The same call again, because its reply was lost.
  local known = call('ZSCORE', keys.commits, nonce)
  if known then return { 'stored', tonumber(known) } end
  local expected, writes = readCommit(arguments[2], arguments[3])
  local names = {}
  for i, record in ipairs(expected) do names[i] = record.key end
  local heads = getFields(keys.heads, names)
  for _, record in ipairs(expected) do
    if versionOf(heads[record.key]) ~= record.version then return { 'conflict', record.key } end
  end
  local claimed, conflict = claimNames(writes)
  if conflict then return conflict end

  local last, lastNonce = lastCommit()
  local sequence, changed = text(last + 1), {}
  for _, write in ipairs(writes) do
    if isResident(heads[write.key]) or isResident(write.head) then
      changed[#changed + 1] = sequence
      changed[#changed + 1] = write.key
    end
  end
  call('HSET', keys.meta, 'last', sequence .. ' ' .. nonce)
  call('ZADD', keys.commits, sequence, nonce)
  writeAll(writes, heads, claimed)
  callMany('ZADD', keys.changes, changed)
  trim(keys.commits)
  local forgotten = trim(keys.changes)
  if forgotten then call('HSET', keys.meta, 'forgotten', forgotten) end
  return { 'stored', tonumber(sequence), lastNonce }
end

define('contentCommit', CONTENT_KEYS, MAY_GROW, commit)
-- For a commit that only removes records: a full Redis accepts it.
define('contentRemove', CONTENT_KEYS, GOES_ON_WHEN_FULL, commit)

-- Reads whole records. Items: their keys. Replies with heads, columns and bodies, each in that
-- order, and with how many of the keys were read: the caller requests the rest again.
define('contentRead', CONTENT_KEYS, READS, function(arguments)
  local reply, bytes, count = { {}, {}, {} }, 0, 0
  for first = 2, #arguments, READ_TOGETHER do
    if bytes > MAX_BYTES_READ then break end
    local fields = { unpack(arguments, first, math.min(first + READ_TOGETHER - 1, #arguments)) }
    for part, hash in ipairs({ keys.heads, keys.columns, keys.bodies }) do
      for i, value in ipairs(call('HMGET', hash, unpack(fields))) do
        reply[part][count + i] = value
        bytes = bytes + (value and #value or 0)
      end
    end
    count = count + #fields
  end
  reply[4] = count
  return reply
end)

-- Reads a page of the columns. Options: cursor, and count, about how many. Replies with the run id of the
-- server, the next cursor, and key and columns in turn. A cursor is only valid on the server run that
-- returned it.
define('contentScan', CONTENT_KEYS, READS, function()
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
  local page = call('HSCAN', keys.columns, options.cursor, 'COUNT', options.count)
  return { run, page[1], page[2] }
end)

-- Replies with the size of each key, in the order of the keys.
define('contentSizes', CONTENT_KEYS, READS, function()
  local sizes = {}
  for i, name in ipairs(CONTENT_KEYS) do
    local isSortedSet = name == 'changes' or name == 'commits'
    sizes[i] = call(isSortedSet and 'ZCARD' or 'HLEN', keys[name])
  end
  return sizes
end)
