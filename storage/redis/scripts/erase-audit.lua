-- Erases a part of the audit log of an account. Options: account. Replies with how many entries were
-- erased.

local AUDIT = KEYS[1]
local ERASED_PER_CALL = 500

local account = decode(ARGV[1]).account
-- '0' is the character after the slash.
local entries = call('ZRANGEBYLEX', AUDIT, '[' .. account .. '/', '(' .. account .. '0', 'LIMIT', 0, ERASED_PER_CALL)
callMany('ZREM', AUDIT, entries)
return #entries
