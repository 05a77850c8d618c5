-- Applies a change that the caller computed from the config it read. Replies `changed` if the
-- stored config is not that one any more.
--
-- ARGV: account, id, the config that was read, new config, status or empty, types or empty, `1` for
-- a new url, most ENABLED.

local account, id, seen, config = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local status, types, isMoved, enabledLimit = ARGV[9], ARGV[10], ARGV[11] == '1', tonumber(ARGV[12])

local w = call('HGET', IDS, id)
local e = w and endpoints.get(w)
if not e or e.account ~= account then return { 'not_found' } end
-- The same call again, because its reply was lost.
if e.config == '\n' .. config then return { 'updated', endpointText(e) } end
if e.config ~= '\n' .. seen then return { 'changed' } end

if status == '' then status = e.status end
local isEnabled = status == 'E' and e.status == 'D'
local isDisabled = status == 'D' and e.status == 'E'
if isEnabled then
  local _, enabled = countRoster(readRoster(account))
  if enabled >= enabledLimit then return { 'enabled_limit' } end
end

goOnWhenFull()
touch(w, e)
e.status, e.config = status, '\n' .. config
endpoints.set(w, e)
if isEnabled or isMoved then
  e.generation = text(tonumber(e.generation) + 1)
  e.slowStart = ''
  moveToLane(w, e, 's')
  touched[w] = true
end
if isEnabled or isMoved or isDisabled then clearHealth(w, e) end
changeRoster(account, w, function(_, known) return status, types ~= '' and types or known end)
flush()
return { 'updated', endpointText(e), notifyAt and text(notifyAt) or '' }
