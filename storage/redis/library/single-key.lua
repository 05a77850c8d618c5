-- Functions on keys that no other function has to name: the audit log, and the data keys.

-- Beyond the entries that were added, so many more may be removed after `keep` was lowered.
local MORE_REMOVED = 200
local ERASED_PER_CALL = 500
-- The entries of an account in one millisecond are numbered with four digits. Later ones share the
-- last number.
local LAST_NUMBER = 0xffff

-- Entries of one millisecond among which those of a repeated call are searched.
local MAX_COMPARED = 1000

-- The next number of an account and a millisecond; nil if one of its entries is of this call.
local function firstNumber(prefix)
  -- 'g' is the character after the hexadecimal digits.
  local newestFirst =
    call('ZREVRANGEBYLEX', keys.audit, '(' .. prefix .. 'g', '[' .. prefix, 'LIMIT', 0, MAX_COMPARED)
  local number = #prefix + 1
  for _, entry in ipairs(newestFirst) do
    if string.sub(entry, number + 5, number + 4 + #options.nonce) == options.nonce then return nil end
  end
  return newestFirst[1] and tonumber(string.sub(newestFirst[1], number, number + 3), 16) + 1 or 0
end

-- Adds entries, and removes the oldest ones of each account beyond those that it may have.
--
-- Options: keep, how many entries, and nonce, which tells a repetition of the call: that adds nothing.
-- Items, three for each entry: account with its log (`account/d` for deliveries, `account/w`), time
-- and text.
define('audit', AUDIT_KEYS, MAY_GROW, function(arguments)
  local members, added, numbers = {}, {}, {}
  for i = 2, #arguments, 3 do
    local account, at, entry = arguments[i], tonumber(arguments[i + 1]), arguments[i + 2]
    local prefix = account .. '/' .. hex(at)
    local number = numbers[prefix] or firstNumber(prefix)
    if not number then return 0 end
    numbers[prefix] = number + 1
    members[#members + 1] = 0
    members[#members + 1] =
      prefix .. string.format('%04x', math.min(number, LAST_NUMBER)) .. '/' .. options.nonce .. '/' .. entry
    added[account] = (added[account] or 0) + 1
  end
  callMany('ZADD', keys.audit, members)
  for account, count in pairs(added) do
    local from, to = below(account)
    local excess = call('ZLEXCOUNT', keys.audit, from, to) - options.keep
    if excess > 0 then
      callMany('ZREM', keys.audit, listBelow(keys.audit, account, '', math.min(excess, count + MORE_REMOVED)))
    end
  end
  return 1
end)

-- Erases a part of the audit log of an account, in two steps, so that a step whose reply was lost can be
-- made again. Options: account, and to, the last entry to erase. Without `to`, it erases nothing, and
-- replies with how many entries come next, and the last of them.
define('eraseAudit', AUDIT_KEYS, GOES_ON_WHEN_FULL, function()
  local from = below(options.account)
  if options.to then return call('ZREMRANGEBYLEX', keys.audit, from, '[' .. options.to) end
  local entries = listBelow(keys.audit, options.account, '', ERASED_PER_CALL)
  return { #entries, entries[#entries] or '' }
end)

-- Stores the data key of an account, unless it has one. Options: account and key. Replies with the key
-- that the account has.
define('addDataKey', DATA_KEYS, MAY_GROW, function()
  call('HSETNX', keys.dataKeys, options.account, options.key)
  return call('HGET', keys.dataKeys, options.account)
end)

-- Stores `key` in place of `stored`, unless others have changed that. Both have the same length, so a
-- full Redis need not refuse it.
define('replaceDataKey', DATA_KEYS, GOES_ON_WHEN_FULL, function()
  if call('HGET', keys.dataKeys, options.account) ~= options.stored then return 0 end
  call('HSET', keys.dataKeys, options.account, options.key)
  return 1
end)

-- The characters of a key's name, which begins its stored text.
local NAME_LENGTH = 8

-- Erases the data key of an account, and keeps its name until `forgetAt`. Options: account and forgetAt.
define('eraseDataKey', DATA_KEYS, GOES_ON_WHEN_FULL, function()
  call('ZREMRANGEBYSCORE', keys.erasedKeys, '-inf', nowText)
  local stored = call('HGET', keys.dataKeys, options.account)
  if not stored then return 0 end
  call('ZADD', keys.erasedKeys, options.forgetAt, string.sub(stored, 1, NAME_LENGTH))
  return call('HDEL', keys.dataKeys, options.account)
end)
