-- What the webhook store reads. Each function takes the options that it names.
--
-- A delivery is read as its suffix, the label of its event, the order of its entry in the log, and its
-- record, which is empty if it was never claimed.

local function getWebhook(id)
  local webhook = call('HGET', keys.ids, id)
  local endpoint = webhook and endpoints:get(webhook)
  if endpoint then return webhook, endpoint end
end

define('readWebhook', PARTITION_KEYS, READS, function()
  local webhook = call('HGET', keys.ids, options.id)
  return { webhook and call('HGET', keys.webhooks, webhook) or '' }
end)

-- The webhooks of an account after a number.
define('readWebhooks', PARTITION_KEYS, READS, function()
  local account, webhooks = readAccount(options.account), {}
  for webhook in string.gmatch(account and account.subscriptions or '', SUBSCRIPTION) do
    if tonumber(webhook) > options.after then webhooks[#webhooks + 1] = webhook end
    if #webhooks > options.limit then break end
  end
  local isMore = #webhooks > options.limit
  if isMore then table.remove(webhooks) end
  if #webhooks == 0 then return { {}, '' } end
  return { call('HMGET', keys.webhooks, unpack(webhooks)), isMore and webhooks[#webhooks] or '' }
end)

define('readEvent', PARTITION_KEYS, READS, function()
  local account = readAccount(options.account)
  return { account and call('HGET', keys.events, account.number .. '/' .. options.event) or '' }
end)

define('readDelivery', PARTITION_KEYS, READS, function()
  local webhook, endpoint = getWebhook(options.id)
  local ref = webhook and webhook .. '/' .. options.suffix
  local d = ref and getDelivery(endpoint.accountNumber, ref)
  local event = d and not d.isBroken and getEvent(endpoint.accountNumber, eventOf(ref))
  if not event then return {} end
  return { options.suffix, event.label, d.order ~= '' and d.order or event.order, deliveries:text(ref) or '' }
end)

local function countPending(webhook)
  local from, to = below(webhook)
  return call('ZLEXCOUNT', keys.queue, from, to) + (inFlight:get(webhook) or 0)
end

-- A page examines at most this many entries of the account's log, whatever it finds. This costs
-- Redis about as much as a page of 100 deliveries.
local MAX_EXAMINED = 500
local READ_TOGETHER = 50
local STATES = { pending = 'p', delivered = 'd', failed = 'f', withheld = 'w' }

-- How many deliveries of a webhook are in the log, in one state or in all.
local function countInLog(webhook, state)
  local counts = getWebhookCounts(webhook)
  local pending = (not state or state == 'pending') and countPending(webhook) or 0
  if state then return counts[STATES[state]] or pending end
  return pending + counts.d + counts.f + counts.w
end

-- Selects the entries from `first` to `last` that are about a webhook and of the type, with the order
-- of the entry before each.
local function findCandidates(entries, first, last, webhook)
  local found, previous = {}, ''
  for i = first, last do
    local order, event, label, receivers = readEntry(entries[i])
    -- A webhook is among those of an event, or the only one of a later delivery.
    local serial = string.find(';' .. receivers .. ';', ';' .. webhook .. ';', 1, true) and ''
      or string.match(receivers, '^' .. webhook .. '%.(%d+)$')
    if serial and (not options.type or typeOf(label) == options.type) then
      found[#found + 1] = {
        ref = toRef(webhook, event, serial), order = order, label = label, previous = previous,
      }
    end
    previous = order
  end
  return found, previous
end

-- Returns the candidates that are in a state, or in any state if `wanted` is nil. A record begins
-- with the letter of its state. A delivery without a record was never claimed.
local function selectMatching(candidates, wanted)
  local refs, found = {}, {}
  for i, candidate in ipairs(candidates) do refs[i] = candidate.ref end
  local values = getFields(keys.deliveries, refs)
  for _, candidate in ipairs(candidates) do
    candidate.value = values[candidate.ref] or ''
    local letter = candidate.value == '' and 'p' or string.match(candidate.value, '^([pldfw]),')
    if letter and (not wanted or wanted == (letter == 'l' and 'p' or letter)) then
      found[#found + 1] = candidate
    end
  end
  return found
end

-- Selects up to `limit` deliveries of a webhook from entries of the log. Returns them, the order of the
-- last entry that was examined, and true if entries are left.
local function selectPage(entries, webhook, state)
  local rows, last = {}, ''
  for first = 1, #entries, READ_TOGETHER do
    local candidates, lastRead =
      findCandidates(entries, first, math.min(first + READ_TOGETHER - 1, #entries), webhook)
    for _, match in ipairs(selectMatching(candidates, STATES[state])) do
      if #rows == options.limit then return rows, match.previous ~= '' and match.previous or last, true end
      rows[#rows + 1] = { suffixOf(match.ref), match.label, match.order, match.value }
    end
    last = lastRead
  end
  return rows, last, #entries == MAX_EXAMINED
end

-- A page of deliveries, newest first; it may have few, or be empty. The second part of the reply says
-- where to continue, and is empty at the end of the log.
define('readDeliveries', PARTITION_KEYS, READS, function()
  local webhook, endpoint = getWebhook(options.id)
  if not webhook or countInLog(webhook, options.state) == 0 then return { {}, '' } end
  local account, before, untilHex = endpoint.accountNumber, options.before, options.to and hex(options.to)
  local from = before == '' and '(' .. account .. '0' or '(' .. account .. '/' .. before .. '/'
  if untilHex and (before == '' or untilHex < before) then from = '(' .. account .. '/' .. untilHex end
  local to = '[' .. account .. '/' .. (options.since and hex(options.since) or '')
  local entries = call('ZREVRANGEBYLEX', keys.log, from, to, 'LIMIT', 0, MAX_EXAMINED)
  local rows, last, isMore = selectPage(entries, webhook, options.state)
  return { rows, isMore and last or '' }
end)

-- A page of deliveries after a place in the log, oldest first; it may have few, or be empty. The second
-- part of the reply is the place up to which the log was examined, the third is empty at its end.
define('readFeed', PARTITION_KEYS, READS, function()
  local webhook, endpoint = getWebhook(options.id)
  if not webhook then return { {}, options.after, '' } end
  local account, after = endpoint.accountNumber, options.after
  local from = '[' .. account .. '/' .. hex(options.since)
  if after >= hex(options.since) then from = '(' .. account .. '/' .. after .. '0' end
  local entries =
    call('ZRANGEBYLEX', keys.log, from, '(' .. account .. '/' .. hex(options.to), 'LIMIT', 0, MAX_EXAMINED)
  local rows, last, isMore = selectPage(entries, webhook)
  return { rows, last == '' and after or last, isMore and 'more' or '' }
end)

-- The most deliveries that a page of found events has, and that one of them has.
local MAX_FOUND = 1000

-- The deliveries of an event to the webhooks in `ids`, by their numbers: newest first.
local function listDeliveriesOf(account, event, order, ids)
  local rows, entry = {}, firstBelow(keys.log, account .. '/' .. order)
  local _, _, label, receivers = readEntry(entry or '')
  for webhook in string.gmatch(receivers or '', '(%d+)') do
    if ids[webhook] then
      rows[#rows + 1] = { webhook = webhook, ref = webhook .. '/' .. event, order = order }
    end
  end
  for webhook, serial in string.gmatch(getProgress(account, event).later, '(%d+)%.(%d+)') do
    if ids[webhook] and serial ~= '0' then
      rows[#rows + 1] = { webhook = webhook, ref = toRef(webhook, event, serial) }
    end
  end
  local found, refs = {}, {}
  for i = #rows, math.max(1, #rows - MAX_FOUND + 1), -1 do refs[#refs + 1] = rows[i].ref end
  deliveries:fetch(refs)
  for i = #rows, math.max(1, #rows - MAX_FOUND + 1), -1 do
    local row, d = rows[i], deliveries:get(rows[i].ref)
    -- A later delivery always has a record.
    if (d and not d.isBroken) or (not d and row.order) then
      found[#found + 1] = {
        ids[row.webhook], suffixOf(row.ref), label, d and d.order ~= '' and d.order or order,
        deliveries:text(row.ref) or '',
      }
    end
  end
  return found
end

-- The events of an account with a key, newest first, and where to continue. With `idsOnly`, without
-- their deliveries.
define('readEvents', PARTITION_KEYS, READS, function()
  local account = readAccount(options.account)
  if not account then return { {}, '' } end
  local ids = {}
  for webhook, _, id in string.gmatch(account.subscriptions, SUBSCRIPTION) do
    if not options.webhook or id == options.webhook then ids[webhook] = id end
  end
  local prefix = account.number .. '/' .. options.key
  local to, from = below(prefix)
  if options.before ~= '' then from = '(' .. prefix .. '/' .. options.before .. '/' end
  local members = call('ZREVRANGEBYLEX', keys.eventKeys, from, to, 'LIMIT', 0, options.limit)
  local events, count, last = {}, 0, ''
  for _, member in ipairs(members) do
    local order, event = string.match(member, '/(%x+)/([^/]+)$')
    if count >= MAX_FOUND then return { events, last } end
    local found = options.idsOnly and {} or listDeliveriesOf(account.number, event, order, ids)
    events[#events + 1], count, last = { event, found }, count + #found, order
  end
  return { events, #members == options.limit and last or '' }
end)

-- How many deliveries are in flight, how many may be, and when the rate lets the next be claimed.
local function describeRoom(webhook, endpoint)
  local slots = countFreeSlots(tonumber(endpoint.slowStart), 0, perEndpoint)
  local openTime = findOpenTime(getPerSecond(endpoint), getRate(webhook, endpoint), now)
  return (inFlight:get(webhook) or 0) .. ',' .. slots .. ',' .. text(openTime)
end

define('readCounts', PARTITION_KEYS, READS, function()
  local webhook, endpoint = getWebhook(options.id)
  if not webhook then return {} end
  local counts, head, nextAt = getWebhookCounts(webhook), firstBelow(keys.queue, webhook), ''
  local headAt = head and readQueueTime(head)
  if headAt then
    local d = deliveries:get(webhook .. '/' .. string.match(head, '[^/]+$'))
    local dueAt = d and not d.isBroken and (tonumber(d.extraAt) or tonumber(d.dueAt))
    nextAt = text(dueAt or headAt + HEAD_START_MS)
  end
  local past = call('HGET', keys.webhookCounts, webhook .. '/h') or ''
  return {
    { countPending(webhook), counts.d, counts.f, counts.w, counts.tests, counts.filtered }, nextAt,
    counts.last, counts.recent, past, describeRoom(webhook, endpoint),
  }
end)

-- Counting more would hold up other calls for too long.
local MAX_COUNTED = 1000

local function countDue()
  local sum = 0
  for _, lane in pairs(READY) do
    local due = call('ZRANGEBYSCORE', keys[lane], '-inf', '(' .. text(now + 1), 'LIMIT', 0, MAX_COUNTED)
    for _, webhook in ipairs(due) do
      sum = sum + call('ZLEXCOUNT', keys.queue, '[' .. webhook .. '/', '(' .. webhook .. '/' .. nowHex .. '0')
    end
  end
  return sum
end

-- How many webhooks are ENABLED, DISABLED, failing, and failing with a warning sent. Empty if there
-- are too many to count.
local function countHealth()
  if call('HLEN', keys.accounts) > MAX_COUNTED or call('ZCARD', keys.healthNotifications) > MAX_COUNTED then
    return {}
  end
  local counts = { E = 0, D = 0, failing = 0, warned = 0 }
  for _, account in ipairs(call('HVALS', keys.accounts)) do
    for _, status in string.gmatch(account, SUBSCRIPTION) do counts[status] = (counts[status] or 0) + 1 end
  end
  local webhooks = call('ZRANGE', keys.healthNotifications, 0, -1)
  endpoints:fetch(webhooks)
  for _, webhook in ipairs(webhooks) do
    local endpoint = endpoints:get(webhook)
    if endpoint and endpoint.status == 'E' and endpoint.failingSince ~= '' then
      local state = endpoint.warnedAt ~= '' and 'warned' or 'failing'
      counts[state] = counts[state] + 1
    end
  end
  return { counts.E, counts.D, counts.failing, counts.warned }
end

-- The most webhooks of a page of accounts, but at least those of one account.
local MAX_SUMMED = 200

-- An account in numbers: its name, its pending deliveries, when its last event was stored, how many
-- webhooks it has, and two texts for each of them: its record, and its attempts by the hour.
local function summarise(name, account)
  local webhooks, fields = {}, {}
  for webhook in string.gmatch(account.subscriptions, SUBSCRIPTION) do
    webhooks[#webhooks + 1] = webhook
    fields[#fields + 1] = webhook
    fields[#fields + 1] = webhook .. '/h'
  end
  local records, hours = getFields(keys.webhooks, webhooks), getFields(keys.webhookCounts, fields)
  local counts, texts = getAccountCounts(account.number), {}
  for _, webhook in ipairs(webhooks) do
    texts[#texts + 1] = string.match(records[webhook] or '', '^[^\n]*')
    texts[#texts + 1] = string.match(hours[webhook] or '', '^[^\n]*\n[^\n]*\n([^\n]*)') or ''
    texts[#texts + 1] = hours[webhook .. '/h'] or ''
  end
  return { name, counts.pending, counts.lastEventAt, texts }, #webhooks
end

-- True if a webhook is the one of its account that fails for longest.
local function failsLongest(account, webhook, failingSince)
  for other in string.gmatch(account.subscriptions, SUBSCRIPTION) do
    local endpoint = endpoints:get(other)
    local member = endpoint and endpoint.failingSince ~= '' and failingMember(other, endpoint.failingSince)
    if member and member < failingMember(webhook, failingSince) then return false end
  end
  return true
end

-- Returns an account of a list; nil if it is missing or cannot be read, so that the list has the others.
local function readListed(name)
  local isReadable, account = pcall(readAccount, name)
  return isReadable and account or nil
end

-- A page of the accounts that have webhooks. `after` is the number of an account. The second part of
-- the reply says where to continue; it is empty at the end.
define('readAccounts', PARTITION_KEYS, READS, function()
  checkTypes({ 'accounts' })
  local rows, webhooks, last = {}, 0, options.after
  local from, limit = '(' .. options.after, options.limit + 1
  local found = call('ZRANGEBYSCORE', keys.accountList, from, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #found, 2 do
    if i > 2 * options.limit or webhooks >= MAX_SUMMED then return { rows, last } end
    local name, number = found[i], found[i + 1]
    local account = readListed(name)
    if account and account.subscriptions ~= '' then
      local row, count = summarise(name, account)
      rows[#rows + 1], webhooks = row, webhooks + count
    end
    last = number
  end
  return { rows, '' }
end)

-- A page of the accounts with a failing webhook. `after` is a member of the failing ones.
define('readFailingAccounts', PARTITION_KEYS, READS, function()
  checkTypes({ 'accounts' })
  local rows, webhooks, last = {}, 0, options.after
  local from = options.after == '' and '-' or '(' .. options.after
  for i, member in ipairs(call('ZRANGEBYLEX', keys.failing, from, '+', 'LIMIT', 0, options.limit + 1)) do
    if i > options.limit or webhooks >= MAX_SUMMED then return { rows, last } end
    local webhook = string.match(member, '/(%d+)$')
    local endpoint = webhook and endpoints:get(webhook)
    local account = endpoint and endpoint.failingSince ~= '' and readListed(endpoint.account)
    if account then
      webhooks = webhooks + countWebhooks(account)
      if failsLongest(account, webhook, endpoint.failingSince) then
        rows[#rows + 1] = summarise(endpoint.account, account)
      end
    end
    last = member
  end
  return { rows, '' }
end)

define('readStats', PARTITION_KEYS, READS, function()
  local leased = call('ZCARD', keys.leases)
  return {
    call('HLEN', keys.ids), call('HLEN', keys.events), call('ZCARD', keys.queue) + leased, leased,
    tonumber(meta:text('completed') or 0), meta:text('bytes') or '0', countDue(), countHealth(),
  }
end)

-- The time of the server that holds the partition.
define('time', PARTITION_KEYS, READS, function() return call('TIME') end)
