-- Stores events, each with all its deliveries or not at all. The first write is one that a full Redis refuses, so nothing is half stored.
-- ARGV: most pending, most pending of an account; then for each event: account, event, type, digest, payload, remember for, nonce.
-- Answers for each: `stored` or `duplicate` with the short ids of its webhooks, `conflict`, or `full` with the bound. Last: the hint.

local mostPending, mostPendingPerAccount = tonumber(ARGV[5]), tonumber(ARGV[6])

local function again(known, digest, nonce)
  if known.digest ~= digest then return { 'conflict', '' } end
  -- The same call once more, since its answer was lost: it did store the event.
  return { known.nonce == nonce and 'stored' or 'duplicate', known.receivers }
end

local function append(account, ek, type, digest, payload, rememberFor, nonce)
  local roster = rosterOf(account)
  local kept = roster and storedEvent(roster.a, ek)
  if kept then return again(kept, digest, nonce) end
  local field = 'e/' .. ek .. '/' .. account
  local remembered = call('HGET', REMEMBERED, field)
  if remembered then
    local expiresAt, by, receivers, of = string.match(remembered, '^(%d+)\n([^\n]*)\n([^\n]*)\n(.*)$')
    if tonumber(expiresAt) > now then return again({ nonce = by, receivers = receivers, digest = of }, digest, nonce) end
  end

  local ws, shorts = {}, {}
  local hasWebhooks = false
  if roster then
    local wished = wishes(type)
    for w, status, short, types in string.gmatch(roster.lines, '(%d+) (%a) (%S+) ([^\n]*)\n') do
      hasWebhooks = true
      if status == 'E' and wants(types, wished) then
        ws[#ws + 1] = w
        shorts[#shorts + 1] = short
      end
    end
  end
  local receivers = table.concat(shorts, ';')
  local rememberUntil = now + tonumber(rememberFor)
  if #ws == 0 and (not hasWebhooks or keepMs == 0) then
    remember(field, table.concat({ text(rememberUntil), nonce, '', digest }, '\n'), rememberUntil)
    return { 'stored', '' }
  end

  local a = roster.a
  local bound = passedBound(a, #ws, mostPending, mostPendingPerAccount)
  if bound then return { 'full', bound } end
  local order = nextOrder()
  local value = table.concat({
    table.concat({ order, #ws, text(rememberUntil), nonce, receivers }, ','), digest, type, payload,
  }, '\n')
  call('HSET', EVENTS, a .. '/' .. ek, value)
  byteChange = byteChange + #value
  call('ZADD', LOG, 0, table.concat({ a, order, ek, type, table.concat(ws, ';') }, '/'))
  if #ws == 0 then
    endEvent(a, account, ek, progressOf(a, ek, 0))
    return { 'stored', '' }
  end
  local entries = {}
  local at = freshDelivery(order, #ws).at
  for _, w in ipairs(ws) do
    entries[#entries + 1] = 0
    entries[#entries + 1] = queueMember(w .. '/' .. ek, at)
    local e = endpoint(w)
    if e then e.isTouched = true end
  end
  call('ZADD', QUEUE, unpack(entries))
  countPending(a, #ws)
  return { 'stored', receivers }
end

local answers = {}
for i = 7, #ARGV, 7 do
  answers[#answers + 1] = append(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6])
end
flush()
answers[#answers + 1] = hintAt and text(hintAt) or ''
return answers
