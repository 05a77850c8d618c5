-- Makes deliveries of kept events that a webhook should have, has not got, and is not about to get.
-- ARGV: most pending, most pending of an account, account, webhook's id, since, the order to go on after or empty, most events to look at, nonce, when the first one is due, and how much later each further one.
-- Answers: empty where there is no such webhook, `full` with the bound, or `made` with how many, where to go on, and the hint.

local mostPending, mostPendingPerAccount = tonumber(ARGV[5]), tonumber(ARGV[6])
local account, id, since, after, limit = ARGV[7], ARGV[8], tonumber(ARGV[9]), ARGV[10], tonumber(ARGV[11])
local nonce, dueAt, everyMs = ARGV[12], tonumber(ARGV[13]), tonumber(ARGV[14])
local answered = answerOf(nonce)
if answered then
  local made, next = string.match(answered, '^(%d+) (%x*)$')
  return { 'made', made, next, '' }
end
local w = call('HGET', IDS, id)
local e = w and endpoints.get(w)
if not e or e.account ~= account then return {} end

local types = ''
for own, known in string.gmatch(rosterOf(account).lines, '(%d+) %a %S+ ([^\n]*)\n') do
  if own == w then types = known end
end

local from = '[' .. e.a .. '/' .. hex(since)
if after ~= '' and after > hex(since) then from = '[' .. e.a .. '/' .. after .. '0' end
local _, to = below(e.a)
local entries = call('ZRANGEBYLEX', LOG, from, to, 'LIMIT', 0, limit)
local lost, last = {}, ''
for _, entry in ipairs(entries) do
  local order, ek, type, receivers = string.match(entry, '^%d+/(%x+)/([^/]+)/([^/]*)/(.*)$')
  last = order
  if not string.find(receivers, '.', 1, true) and wants(types, wishes(type)) then
    local event = { count = select(2, string.gsub(receivers, '%d+', '')), type = type }
    local found, nextSerial = deliveriesTo(w, e, ek, event)
    local isLost = true
    for _, item in ipairs(found) do isLost = isLost and item[2].state == 'f' end
    if isLost then lost[#lost + 1] = { ek, event, nextSerial } end
  end
end

local bound = #lost > 0 and passedBound(e.a, #lost, mostPending, mostPendingPerAccount)
if bound then return { 'full', bound } end
for i, item in ipairs(lost) do addDelivery(w, e, item[1], item[2], item[3], dueAt + (i - 1) * everyMs) end
progresses.flush()
flush()
local next = #entries == limit and last or ''
if #lost > 0 then rememberAnswer(nonce, #lost .. ' ' .. next) end
return { 'made', #lost, next, hintAt and text(hintAt) or '' }
