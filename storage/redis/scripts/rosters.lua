-- Rosters: the webhooks of an account in one record. It is `<account's number>\n`, then a line
-- `<webhook> <E or D> <its short id> |<type>|<type>|` for each webhook, oldest first.

local function readRoster(account)
  local value = call('HGET', ACCOUNTS, account)
  if not value then return nil end
  local a, lines = string.match(value, '^(%d+)\n(.*)$')
  -- Without the roster the receivers of an event are unknown, so the script fails.
  if not a then error('the roster of an account cannot be read') end
  return { a = a, lines = lines }
end

local function countRoster(roster)
  local all, enabled = 0, 0
  if roster then
    for status in string.gmatch(roster.lines, '%d+ (%a) [^\n]*\n') do
      all = all + 1
      if status == 'E' then enabled = enabled + 1 end
    end
  end
  return all, enabled
end

local function rosterLine(w, status, short, types) return w .. ' ' .. status .. ' ' .. short .. ' ' .. types .. '\n' end

-- Replaces the line of a webhook. `change` returns its new status and types, or nothing to remove
-- the line.
local function changeRoster(account, w, change)
  local roster = readRoster(account)
  if not roster then return end
  local lines = string.gsub(roster.lines, '(%d+) (%a) (%S+) ([^\n]*)\n', function(own, status, short, types)
    if own ~= w then return nil end
    status, types = change(status, types)
    return status and rosterLine(w, status, short, types) or ''
  end)
  call('HSET', ACCOUNTS, account, roster.a .. '\n' .. lines)
end
