-- Reads whole records. ARGV: their keys. Replies with heads, columns and bodies, each in that
-- order, and with how many of the keys were read: the caller requests the rest again.

local MOST_BYTES, READ_TOGETHER = 1048576, 10
local reply, bytes, count = { {}, {}, {} }, 0, 0
for first = 1, #ARGV, READ_TOGETHER do
  if bytes > MOST_BYTES then break end
  local keys = { unpack(ARGV, first, math.min(first + READ_TOGETHER - 1, #ARGV)) }
  for part, hash in ipairs({ HEADS, COLUMNS, BODIES }) do
    for i, value in ipairs(call('HMGET', hash, unpack(keys))) do
      reply[part][count + i] = value
      bytes = bytes + (value and #value or 0)
    end
  end
  count = count + #keys
end
reply[4] = count
return reply
