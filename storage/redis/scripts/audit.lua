-- Adds entries to the audit log, and removes the oldest ones of each account beyond those that it
-- may have. The log is the only key of this script, so that no other script has to name it.
--
-- ARGV, after the arguments of every script: entries to keep, nonce; then account, time and text
-- of each entry. The nonce makes a repetition of the call add the same members.

local AUDIT = KEYS[1]
local keep, nonce = tonumber(ARGV[5]), ARGV[6]

-- Beyond the entries that were added, so many more may be removed after `keep` was lowered.
local MORE_REMOVED = 200

local members, added = {}, {}
for i = 7, #ARGV, 3 do
  local account, at, entry = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  members[#members + 1] = 0
  members[#members + 1] = account .. '/' .. string.format('%011x%04x', at, (i - 7) / 3) .. '/' .. nonce .. '/' .. entry
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
