-- A page of the columns. ARGV: cursor, about how many. Replies with the run of the server, in which alone the cursors have a meaning, the next cursor, and key and columns in turn.

local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
local page = call('HSCAN', COLUMNS, ARGV[1], 'COUNT', ARGV[2])
return { run, page[1], page[2] }
