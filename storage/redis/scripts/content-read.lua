-- Whole records. ARGV: their keys. Replies with heads, columns and bodies, each in that order.

local heads, columns, bodies = fieldsOf(HEADS, ARGV), fieldsOf(COLUMNS, ARGV), fieldsOf(BODIES, ARGV)
local reply = { {}, {}, {} }
for i, key in ipairs(ARGV) do
  reply[1][i], reply[2][i], reply[3][i] = heads[key], columns[key], bodies[key]
end
return reply
