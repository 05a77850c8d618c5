-- Reads a page of the columns. ARGV: cursor, about how many. Replies with the run id of the server,
-- the next cursor, and key and columns in turn. A cursor is only valid on the server run that
-- returned it.

local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
local page = call('HSCAN', COLUMNS, ARGV[1], 'COUNT', ARGV[2])
return { run, page[1], page[2] }
