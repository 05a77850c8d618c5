-- Adds, replaces or erases the data key of an account. The data keys are the only key of this script.
-- Options: account and change. `add`: stores `key`, unless the account has one, and replies with the one
-- that it has. `replace`: stores `key` in place of `stored`, unless others have changed that. `erase`.

local DATA_KEYS = KEYS[1]
local options = decode(ARGV[1])
local account, change = options.account, options.change

if change == 'add' then
  call('HSETNX', DATA_KEYS, account, options.key)
  return call('HGET', DATA_KEYS, account)
end
if change == 'erase' then return call('HDEL', DATA_KEYS, account) end
if call('HGET', DATA_KEYS, account) == options.stored then call('HSET', DATA_KEYS, account, options.key) end
return 0
