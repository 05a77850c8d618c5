-- Adds entries to the audit log, and removes the oldest ones of each account beyond those that it
-- may have. The log is the only key of this script, so that no other script has to name it.
--
-- Options: keep, how many entries, and nonce, which tells a repetition of the call: that adds nothing.
-- ARGV, three for each entry: account, time and text.

local AUDIT = KEYS[1]
local options = decode(ARGV[1])
local keep, nonce = options.keep, options.nonce

-- Beyond the entries that were added, so many more may be removed after `keep` was lowered.
local MORE_REMOVED = 200

-- The entries of an account in one millisecond are numbered with four digits. Later ones share the
-- last number.
local LAST_NUMBER = 0xffff

-- The next number of an account and a millisecond; nil if the newest entry is of this nonce.
local function firstNumber(prefix)
  -- 'g' is the character after the hexadecimal digits.
  local newest = call('ZREVRANGEBYLEX', AUDIT, '(' .. prefix .. 'g', '[' .. prefix, 'LIMIT', 0, 1)[1]
  if not newest then return 0 end
  local number = #prefix + 1
  if string.sub(newest, number + 5, number + 4 + #nonce) == nonce then return nil end
  return tonumber(string.sub(newest, number, number + 3), 16) + 1
end

local members, added, numbers = {}, {}, {}
for i = 2, #ARGV, 3 do
  local account, at, entry = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local prefix = account .. '/' .. string.format('%011x', at)
  local number = numbers[prefix] or firstNumber(prefix)
  if not number then return 0 end
  numbers[prefix] = number + 1
  members[#members + 1] = 0
  members[#members + 1] = prefix .. string.format('%04x', math.min(number, LAST_NUMBER)) .. '/' .. nonce .. '/' .. entry
  added[account] = (added[account] or 0) + 1
end
callMany('ZADD', AUDIT, members)

for account, count in pairs(added) do
  -- '0' is the character after the slash.
  local from, to = '[' .. account .. '/', '(' .. account .. '0'
  local excess = call('ZLEXCOUNT', AUDIT, from, to) - keep
  if excess > 0 then
    callMany('ZREM', AUDIT, call('ZRANGEBYLEX', AUDIT, from, to, 'LIMIT', 0, math.min(excess, count + MORE_REMOVED)))
  end
end
return 1
