-- Stores the events that append.lua leaves to this script, each with all its deliveries or not at
-- all. The first write is one that a full Redis refuses, so nothing is half stored.
--
-- ARGV: most pending, most pending of an account; then for each event: account, event, type,
-- digest, payload, remember for, nonce, the short id of the only webhook it is for or empty, label,
-- and `1` if it follows the event before it in a list, or empty.
--
-- Replies for each event: `skipped` if it follows one that was not stored; else `stored` or
-- `duplicate` with the short ids of its webhooks and the number of all webhooks of its account,
-- `conflict`, or `full` with the bound. The last element is the time that workers are notified of.

local mostPending, mostPendingPerAccount = tonumber(ARGV[5]), tonumber(ARGV[6])

local function replyToRepeated(known, digest, nonce, roster)
  local result = compareKnown(known.digest, digest)
  if result == 'conflict' then return { result, '' } end
  -- The same call again, because its reply was lost: it did store the event.
  return { known.nonce == nonce and 'stored' or result, known.receivers, (countRoster(roster)) }
end

local FIRST, FIELDS = 7, 10
local rosters = {}

local function rosterFor(account)
  if rosters[account] == nil then rosters[account] = readRoster(account) or false end
  return rosters[account] or nil
end

-- Everything already known about the ids, read at once.
local eventKeys, rememberedKeys = {}, {}
for i = FIRST, #ARGV, FIELDS do
  local account, ek = ARGV[i], ARGV[i + 1]
  local roster = rosterFor(account)
  eventKeys[#eventKeys + 1] = (roster and roster.a or '') .. '/' .. ek
  rememberedKeys[#rememberedKeys + 1] = 'e/' .. ek .. '/' .. account
end
local numbers = {}
for _, roster in pairs(rosters) do
  if roster then numbers[#numbers + 1] = roster.a end
end
books.fetch(numbers)
local knownEvents = call('HMGET', EVENTS, unpack(eventKeys))
local knownIds = call('HMGET', REMEMBERED, unpack(rememberedKeys))
-- The events that this script has stored, by account and id.
local stored = {}
local values = {}

local function append(place, account, ek, type, digest, payload, rememberFor, nonce, target, label)
  local roster, key = rosterFor(account), eventKeys[place]
  local kept = stored[rememberedKeys[place]] or knownEvents[place] and readEvent(knownEvents[place])
  if kept then return replyToRepeated(kept, digest, nonce, roster) end
  local remembered = knownIds[place]
  if remembered then
    local expiresAt, by, receivers, of = string.match(remembered, '^(%d+)\n([^\n]*)\n([^\n]*)\n(.*)$')
    if tonumber(expiresAt) > now then return replyToRepeated({ nonce = by, receivers = receivers, digest = of }, digest, nonce, roster) end
  end

  local ws, shorts = {}, {}
  local all, isTest = 0, target ~= ''
  if roster then
    local patterns = listPatterns(type)
    for w, status, short, types in string.gmatch(roster.lines, '(%d+) (%a) (%S+) ([^\n]*)\n') do
      all = all + 1
      if receives({ id = short, status = status, types = types }, patterns, isTest and target or nil) then
        ws[#ws + 1] = w
        shorts[#shorts + 1] = short
      end
    end
  end
  local receivers = table.concat(shorts, ';')
  local rememberUntil = now + tonumber(rememberFor)
  if not isKept(isTest, #ws, all, keepMs) then
    remember(rememberedKeys[place], table.concat({ text(rememberUntil), nonce, '', digest }, '\n'), rememberUntil)
    stored[rememberedKeys[place]] = { nonce = nonce, receivers = '', digest = digest }
    return { 'stored', '', all }
  end

  local a = roster.a
  local bound = passedBound(a, #ws, mostPending, mostPendingPerAccount)
  if bound then return { 'full', bound } end
  local order = nextOrder()
  local value = table.concat({
    table.concat({ order, #ws, text(rememberUntil), nonce, receivers }, ','), digest, label, payload,
  }, '\n')
  values[#values + 1] = key
  values[#values + 1] = value
  byteChange = byteChange + #value
  stored[rememberedKeys[place]] = { nonce = nonce, receivers = receivers, digest = digest }
  -- A test is in the log like a later delivery, so that `recover` ignores it.
  log.add(table.concat({ a, order, ek, label, table.concat(ws, ';') .. (isTest and '.0' or '') }, '/'), 0)
  if #ws == 0 then completeEvent(a, account, ek, getProgress(a, ek, 0)) end
  local fresh = freshDelivery(order, #ws)
  for _, w in ipairs(ws) do
    local ref = w .. '/' .. ek
    queue.add(queueMember(ref, fresh.at), 0)
    if isTest then deliveries.set(ref, fresh) end
    touched[w] = true
  end
  count(a, 'pending', #ws)
  return { 'stored', receivers, all }
end

-- If something else created a key of another type, the script has to fail before its first write.
for _, key in ipairs({ LOG, FAST, SLOW, ENDED, FREEING }) do call('ZCARD', key) end
for _, key in ipairs({ WEBHOOKS, IN_FLIGHT, PROGRESS, DELIVERIES }) do call('HLEN', key) end

local replies, hasStopped = {}, false
for i = FIRST, #ARGV, FIELDS do
  local place = #replies + 1
  hasStopped = hasStopped and ARGV[i + 9] == '1'
  replies[place] = hasStopped and { 'skipped', '' } or append(place, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7], ARGV[i + 8])
  hasStopped = hasStopped or replies[place][1] == 'conflict' or replies[place][1] == 'full'
end
-- The first write of this script, unless an id only had to be remembered.
callMany('HSET', EVENTS, values)
freeExcess()
flush()
-- Ids that are only remembered lead to no claim, so no `tidy` would free them.
forgetSome(2 * #replies)
replies[#replies + 1] = notifyAt and text(notifyAt) or ''
return replies
