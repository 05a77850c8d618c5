-- The webhooks of an account, as one text: `<account's number>\n`, then a line `<webhook> <E or D> <its short id> |<type>|<type>|` for each, oldest first.

local function rosterOf(account)
  local value = call('HGET', ACCOUNTS, account)
  if not value then return nil end
  local a, lines = string.match(value, '^(%d+)\n(.*)$')
  -- Without it nobody knows who an event is for: better no answer than a wrong one.
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

-- Replaces the line of a webhook by what `change` makes of its parts; without an answer the line goes.
local function changeRoster(account, w, change)
  local roster = rosterOf(account)
  if not roster then return end
  local lines = string.gsub(roster.lines, '(%d+) (%a) (%S+) ([^\n]*)\n', function(own, status, short, types)
    if own ~= w then return nil end
    status, types = change(status, types)
    return status and rosterLine(w, status, short, types) or ''
  end)
  call('HSET', ACCOUNTS, account, roster.a .. '\n' .. lines)
end

-- What a subscriber may have asked for to get an event of this type: the type, `prefix.*` for each of its prefixes, `*`.
local function wishes(type)
  local all = { '|' .. type .. '|', '|*|' }
  for place in string.gmatch(type, '()%.') do all[#all + 1] = '|' .. string.sub(type, 1, place) .. '*|' end
  return all
end

local function wants(types, wished)
  for _, wish in ipairs(wished) do
    if string.find(types, wish, 1, true) then return true end
  end
  return false
end
