-- What is counted with the data, and the completion of deliveries and events.

-- The pending deliveries and the completed events of each account that has any, and when its last event
-- was stored.
local accountCounts = hash('accountCounts', function(value)
  local pending, completedEvents, lastEventAt = string.match(value, '^(%d+),(%d+),?(%d*)')
  return {
    pending = tonumber(pending) or 0, completed = tonumber(completedEvents) or 0,
    lastEventAt = lastEventAt or '',
  }
end, function(counts)
  return (counts.pending > 0 or counts.completed > 0)
    and text(counts.pending) .. ',' .. text(counts.completed) .. ',' .. counts.lastEventAt
end)

local function getAccountCounts(account)
  return accountCounts:get(account) or { pending = 0, completed = 0, lastEventAt = '' }
end

local function count(account, what, by)
  local counts = getAccountCounts(account)
  counts[what] = math.max(0, counts[what] + by)
  accountCounts:set(account, counts)
end

-- The completed deliveries kept for each webhook, by their state; failed tests count as failed, too;
-- and how many events its filter has refused. Then its last attempt, and its attempts by the hour.
local webhookCounts = hash('webhookCounts', function(value)
  local d, f, w, tests, filtered, last, recent =
    string.match(value, '^(%d+),(%d+),(%d+),(%d+),(%d+)\n([^\n]*)\n(.*)$')
  return {
    d = tonumber(d) or 0, f = tonumber(f) or 0, w = tonumber(w) or 0, tests = tonumber(tests) or 0,
    filtered = tonumber(filtered) or 0, last = last or '', recent = recent or '',
  }
end, function(counts)
  local counted = {
    text(counts.d), text(counts.f), text(counts.w), text(counts.tests), text(counts.filtered),
  }
  return table.concat(counted, ',') .. '\n' .. counts.last .. '\n' .. counts.recent
end)

local function getWebhookCounts(webhook)
  return webhookCounts:get(webhook)
    or { d = 0, f = 0, w = 0, tests = 0, filtered = 0, last = '', recent = '' }
end

-- Counts a completed delivery. Deliveries that a removed webhook left behind are not counted.
local function countDelivery(webhook, d, by)
  if not endpoints:get(webhook) then return end
  local counts = getWebhookCounts(webhook)
  if not counts[d.state] then return end
  counts[d.state] = math.max(0, counts[d.state] + by)
  if d.state == 'f' and d.reason == 'test_failed' then counts.tests = math.max(0, counts.tests + by) end
  webhookCounts:set(webhook, counts)
end

-- The open deliveries of each event, since when it has none, its later deliveries, and how long it is
-- kept if not for the retention of all.
local progress = hash('progress', function(value)
  local open, completedAt, later, keepMs = string.match(value, '^(%d+),?(%d*),?([^,]*),?(%d*)$')
  return {
    open = tonumber(open) or 0, completedAt = completedAt or '', later = later or '',
    keepMs = tonumber(keepMs or ''),
  }
end, function(p)
  if p.keepMs then return table.concat({ text(p.open), p.completedAt, p.later, text(p.keepMs) }, ',') end
  if p.later ~= '' then return text(p.open) .. ',' .. p.completedAt .. ',' .. p.later end
  return p.completedAt == '' and text(p.open) or text(p.open) .. ',' .. p.completedAt
end)

local function getProgress(account, event)
  return progress:get(account .. '/' .. event) or { open = 0, completedAt = '', later = '' }
end

-- The member of an event that has no open deliveries.
local function completedMember(account, event, p)
  return account .. '/' .. hex(findFreePlace(tonumber(p.completedAt), p.keepMs)) .. '/' .. event
end

local completed, retention = sortedSet('completed'), sortedSet('retention', 'LT')

-- The names of accounts, by number, in which this call completed events.
local completedIn

-- Notes that an account has another completed event. `keepMs`: nil for the retention of all.
local function startRetention(account, name, keepMs)
  completedIn[account] = name
  local member, freeAt = account .. '/' .. name, now + (keepMs or options.retentionMs)
  retention:add(member, text(math.min(freeAt, tonumber(retention.scores[member] or nil) or freeAt)))
end

-- Starts the retention of an event without open deliveries.
local function completeEvent(account, name, event, p)
  if p.completedAt ~= '' then
    completed:remove(completedMember(account, event, p))
  else
    count(account, 'completed', 1)
  end
  p.completedAt = nowText
  progress:set(account .. '/' .. event, p)
  completed:add(completedMember(account, event, p), 0)
  startRetention(account, name, p.keepMs)
end

-- Opens an event again, for a later delivery.
local function reopenEvent(account, event, p)
  if p.completedAt ~= '' then
    completed:remove(completedMember(account, event, p))
    count(account, 'completed', -1)
  end
  p.open, p.completedAt = p.open + 1, ''
  progress:set(account .. '/' .. event, p)
end

-- Takes one open delivery from an event. With the last one the event is completed.
local function closeEvent(account, name, event)
  local p = getProgress(account, event)
  p.open = math.max(0, p.open - 1)
  if p.open == 0 then completeEvent(account, name, event, p) else progress:set(account .. '/' .. event, p) end
end

-- Counts a delivery that is not open any more.
local function closeDelivery(account, name, event)
  count(account, 'pending', -1)
  closeEvent(account, name, event)
end

-- Completes a delivery. A failed delivery may still be reported as delivered later.
local function completeDelivery(endpoint, ref, d, state, reason)
  local webhook, event, wasOpen = webhookOf(ref), eventOf(ref), isOpen(d)
  if not wasOpen then countDelivery(webhook, d, -1) end
  d.state, d.reason, d.completedAt, d.extraAt = state, reason, text(now), ''
  countDelivery(webhook, d, 1)
  deliveries:set(ref, d)
  if wasOpen then
    metaAdded.completed = metaAdded.completed + 1
    closeDelivery(endpoint.accountNumber, endpoint.account, event)
  else
    local p = getProgress(endpoint.accountNumber, event)
    if p.open == 0 then completeEvent(endpoint.accountNumber, endpoint.account, event, p) end
  end
end

-- The range of the completed events of an account that are kept for a time of their own.
local function keptIn(account) return '[' .. account .. '/' .. hex(KEPT_FROM), '(' .. account .. '0' end

-- How many completed events an account has beyond those that it may keep.
local function countExcess(account)
  local allowed = options.retentionEvents
  if options.retentionMs == 0 then
    allowed = math.min(allowed, call('ZLEXCOUNT', keys.completed, keptIn(account)))
  end
  return getAccountCounts(account).completed - allowed
end

-- The accounts with an excess, as `A/account`: the caller lets `tidy` free it.
local function listExcess()
  local names = {}
  for account, name in pairs(completedIn) do
    if countExcess(account) > 0 then names[#names + 1] = account .. '/' .. name end
  end
  return names
end
