-- Stores events, each with all its deliveries or not at all, and leases due deliveries.
--
-- Options: pending, pendingPerAccount (the bounds), dataSet (its name if it has none), lease (the
-- options of `claim`) and claimer, the place of the event whose caller claims: nothing is leased
-- unless that is stored. Items, two for each event: JSON with account, id, type, rememberUntil, nonce,
-- target (the id of the only webhook it is for), keepMs (how long it is kept; none: for the retention of
-- all), follows (true if it follows the event before it in a list), passes (by the names of filters, if
-- the event passes them); and `digest⏎label⏎payload`.
--
-- Replies with a line for each event, and as `claim`. A line is `stored` or `duplicate` with the
-- order, the ids of the webhooks, and how many webhooks the account has; `conflict`; `full` with the
-- bound; `undecided` if a webhook has a filter that `passes` does not name: the caller then reads the
-- filters of the account; or `skipped` if it follows one that was not stored. The order is `-` if this
-- call has not stored the event. If it has, the number of the account follows.

-- The texts of the events. `events` has what other functions read of them.
local eventTexts = hash('events')

-- By name: an account's number, its subscriptions, and the receivers by type. All of this file is of
-- one call: the function begins with empty ones.
local accounts

local function getAccount(name)
  if not accounts[name] then
    local account = readAccount(name) or { number = '', subscriptions = '' }
    account.receivers = {}
    accounts[name] = account
  end
  return accounts[name]
end

-- The events of the call, and what is remembered with their ids.
local items, storedIds
-- Events that the call has stored, by their ids.
local stored
-- Events that are gone, whose ids are remembered.
local remembered
-- Pending deliveries of all accounts.
local allPending

-- Reads everything that is known about the events at once.
local function readItems(arguments)
  accounts, items, stored, remembered = {}, {}, {}, {}
  local eventKeys, idKeys, numbers = {}, {}, {}
  for i = 2, #arguments, 2 do
    local item = decode(arguments[i])
    item.value, item.name, item.account = arguments[i + 1], item.account, getAccount(item.account)
    item.digest, item.label = string.match(item.value, '^([^\n]*)\n([^\n]*)\n')
    item.key, item.idKey = item.account.number .. '/' .. item.id, 'e/' .. item.id .. '/' .. item.name
    local place = #items + 1
    items[place], eventKeys[place], idKeys[place], numbers[place] =
      item, item.key, item.idKey, item.account.number
  end
  eventTexts:fetch(eventKeys)
  storedIds = call('HMGET', keys.remembered, unpack(idKeys))
  accountCounts:fetch(numbers)
  allPending = call('ZCARD', keys.queue) + call('ZCARD', keys.leases)
end

-- The webhooks of an account that get an event: their numbers, their ids, and how many webhooks the
-- account has.
local function findReceivers(account, type, target)
  local found = not target and account.receivers[type]
  if found then return found end
  local webhooks, ids, all, filters, filtered = {}, {}, 0, {}, {}
  local patterns = listPatterns(type)
  for webhook, status, id, types in string.gmatch(account.subscriptions, SUBSCRIPTION) do
    all = all + 1
    if receives({ id = id, status = status, types = types }, patterns, target) then
      webhooks[#webhooks + 1] = webhook
      ids[#ids + 1] = id
      filters[webhook] = not target and getFilterName(types) or nil
      if filters[webhook] then filtered[#filtered + 1] = webhook end
    end
  end
  found = {
    webhooks = webhooks, numbers = table.concat(webhooks, ';'), ids = table.concat(ids, ';'), all = all,
  }
  if #filtered > 0 then
    found.filters, found.idOf = filters, ids
    webhookCounts:fetch(filtered)
  end
  if not target then account.receivers[type] = found end
  return found
end

-- Leaves out the webhooks whose filters an event does not pass: `refused` has their numbers. Nil if
-- `passes` does not name one of the filters.
local function applyFilters(found, passes)
  if not found.filters then return found, {} end
  local webhooks, ids, refused = {}, {}, {}
  for i, webhook in ipairs(found.webhooks) do
    local name, isPassed = found.filters[webhook], true
    if name then isPassed = (passes or {})[name] end
    if isPassed == nil then return nil end
    if isPassed then
      webhooks[#webhooks + 1], ids[#ids + 1] = webhook, found.idOf[i]
    else
      refused[#refused + 1] = webhook
    end
  end
  local passed = {
    webhooks = webhooks, numbers = table.concat(webhooks, ';'), ids = table.concat(ids, ';'), all = found.all,
  }
  return passed, refused
end

local function countFiltered(webhooks)
  for _, webhook in ipairs(webhooks) do
    local counts = getWebhookCounts(webhook)
    counts.filtered = counts.filtered + 1
    webhookCounts:set(webhook, counts)
  end
end

-- Returns the event that an id belongs to: stored now or before, or remembered. Nil for a new one.
local function findEvent(place)
  local found = stored[items[place].idKey]
  if found then return found end
  local text = eventTexts:text(items[place].key)
  local nonce, receivers, digest = string.match(text or '', '^%x+,%d+,([^,]*),([^,\n]*)\n([^\n]*)\n')
  if nonce then return { nonce = nonce, receivers = receivers, digest = digest } end
  if text then error('a stored event cannot be read') end
  local expiresAt, by, to, of = string.match(storedIds[place] or '', '^(%d+)\n([^\n]*)\n([^\n]*)\n(.*)$')
  if expiresAt and tonumber(expiresAt) > now then return { nonce = by, receivers = to, digest = of } end
end

-- Queues the deliveries of an event. Those of a test have a record, as later deliveries do, so that
-- `recover` ignores them.
local function addDeliveries(item, found, order)
  local createdAt = timeOf(order)
  if item.target then
    for _, webhook in ipairs(found.webhooks) do
      local d = newDelivery(order)
      -- The order follows that of a process whose clock is ahead; the delivery does not wait for it.
      if createdAt > now then d.dueAt = text(now) end
      enqueue(item.account.number, webhook .. '/' .. item.id, d)
    end
    return
  end
  local suffix = '/' .. hex(findQueueTime(nil, createdAt, nil, createdAt)) .. '/' .. item.id
  for _, webhook in ipairs(found.webhooks) do
    queue:add(webhook .. suffix, 0)
    touched[webhook] = true
  end
end

local function store(item, found)
  local account, order = item.account.number, nextOrder()
  local value =
    table.concat({ order, text(item.rememberUntil), item.nonce, found.ids }, ',') .. '\n' .. item.value
  eventTexts:setText(item.key, value)
  metaAdded.bytes = metaAdded.bytes + #value
  local receivers = found.numbers .. (item.target and '.0' or '')
  log:add(table.concat({ account, order, item.id, item.label, receivers }, '/'), 0)
  if string.find(item.label, ',', 1, true) then
    forEachKey(account, order, item.id, item.label, keyIndex.add)
  end
  addDeliveries(item, found, order)
  count(account, 'pending', #found.webhooks)
  getAccountCounts(account).lastEventAt = nowText
  if #found.webhooks == 0 then
    local p = { open = 0, completedAt = '', later = '', keepMs = item.keepMs }
    completeEvent(account, item.name, item.id, p)
  elseif item.keepMs then
    progress:set(item.key, { open = #found.webhooks, completedAt = '', later = '', keepMs = item.keepMs })
  else
    progress:setText(item.key, text(#found.webhooks))
  end
  return table.concat({ 'stored', order, found.ids, found.all, account }, ' ')
end

local function append(place)
  local item = items[place]
  local subscribed, before = findReceivers(item.account, item.type, item.target), findEvent(place)
  if before then
    local result = compareKnown(before.digest, item.digest)
    if result == 'conflict' then return result end
    -- The same call again, because its reply was lost: it did store the event.
    return table.concat({
      before.nonce == item.nonce and 'stored' or result, '-', before.receivers, subscribed.all,
    }, ' ')
  end
  local found, refused = applyFilters(subscribed, item.passes)
  if not found then return 'undecided' end
  local added = #found.webhooks
  local isStored = isKept(item.target ~= nil, added, found.all, item.keepMs or options.retentionMs)
  if isStored then
    local pending = getAccountCounts(item.account.number).pending
    if pending + added > options.pendingPerAccount then return 'full pendingPerAccount' end
    if allPending + added > options.pending then return 'full pending' end
    allPending = allPending + added
  end
  countFiltered(refused)
  stored[item.idKey] = { nonce = item.nonce, receivers = found.ids, digest = item.digest }
  if isStored then return store(item, found) end
  remembered[#remembered + 1] = item
  return 'stored -  ' .. found.all
end

-- What a claim needs after the first write.
local CLAIMED = { 'deliveries', 'removals', 'retention', 'expirations', 'rates' }

define('append', PARTITION_KEYS, MAY_GROW, function(arguments)
  meta:fetch({ 'dataSet', 'turn', 'order', 'bytes' })
  readItems(arguments)
  local lines, hasStopped = {}, false
  for place, item in ipairs(items) do
    hasStopped = hasStopped and item.follows
    local line = hasStopped and 'skipped' or append(place)
    hasStopped = hasStopped or string.find(line, '^[cfu]') ~= nil
    lines[place] = line
  end
  if next(eventTexts.changed) and not meta:text('dataSet') then meta:setText('dataSet', options.dataSet) end
  if options.claimer then checkTypes(CLAIMED) end
  if #remembered > 0 then checkTypes({ 'expirations' }) end
  flush()
  for _, item in ipairs(remembered) do
    local value = table.concat({ text(item.rememberUntil), item.nonce, '', item.digest }, '\n')
    remember(item.idKey, value, item.rememberUntil)
  end
  -- Ids that are only remembered lead to no claim, so no `tidy` would forget them.
  if #remembered > 0 then forgetExpired(2 * #remembered) end
  local isClaiming = options.claimer and not string.find(lines[options.claimer], '^[cfu]')
  return { table.concat(lines, '\n'), claim(isClaiming and options.lease or nil, listExcess()) }
end)
