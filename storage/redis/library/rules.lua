-- The rules of storage/queue that several functions need, in Lua. settle.lua has those of recent
-- attempts, recover.lua those of standing. `null` is nil here. The decisions in
-- storage/queue/vectors.json hold in both languages.

-- When an endpoint may be served, and with how many deliveries: endpoint.ts.

-- Returns the slow start after some successes in a row; nil for no limit but `perEndpoint`.
local function growSlowStart(slowStart, successes, perEndpoint)
  if not slowStart or slowStart + successes >= perEndpoint then return nil end
  return slowStart + successes
end

-- Returns how many more attempts may be in flight. Below 0 after the limit was lowered.
local function countFreeSlots(slowStart, inFlight, perEndpoint)
  return math.min(perEndpoint, slowStart or perEndpoint) - inFlight
end

-- Returns the second that counts at `now`, and what was claimed in it. A claimed second is
-- `{ second, count }`; nil without one.
local function getSecond(claimed, now)
  local second = math.floor(now / MS_PER_SECOND)
  if claimed and claimed.second >= second and claimed.second <= second + MAX_SECONDS_AHEAD then
    return claimed.second, claimed.count
  end
  return second, 0
end

-- Returns how many deliveries may be claimed at `now`. `perSecond`: nil for any number.
local function countLeft(perSecond, claimed, now)
  if not perSecond then return math.huge end
  local _, count = getSecond(claimed, now)
  return math.max(0, perSecond - count)
end

-- Returns when the next delivery may be claimed: `now`, or when the next second begins.
local function findOpenTime(perSecond, claimed, now)
  if not perSecond then return now end
  local second, count = getSecond(claimed, now)
  return count < perSecond and now or (second + 1) * MS_PER_SECOND
end

-- Counts deliveries that are claimed at `now`.
local function addClaimed(claimed, now, added)
  local second, count = getSecond(claimed, now)
  return { second = second, count = count + added }
end

-- True if an endpoint keeps its turn, whatever has changed about it: it is ready already. Serving it
-- finds out what there is.
local function keepsTurn(readyAt, now) return readyAt ~= nil and readyAt <= now end

-- Returns when an endpoint may be served next; nil for not before something changes. `head`: when
-- the first delivery of its queue may be claimed; nil if the queue is empty.
local function findReadyTime(head, freeSlots, openTime)
  if not head or freeSlots <= 0 then return nil end
  return math.max(head, openTime)
end

-- True if sleeping workers must be notified: an endpoint is ready earlier than before.
local function isEarlier(readyAt, before) return readyAt ~= nil and (not before or readyAt < before) end

-- What an attempt changes, and which settlements count: endpoint.ts.

-- Decides what the report of some attempts changes; nil for nothing. `health` is nil if it stays as
-- it is. Statuses and lanes are those of the record: `E`, `f`.
local function applyReport(endpoint, report, attempts, perEndpoint)
  if report.generation ~= endpoint.generation then return nil end
  local change = { lane = report.lane, slowStart = 1 }
  if report.ok then change.slowStart = growSlowStart(endpoint.slowStart, attempts, perEndpoint) end
  if endpoint.status ~= 'E' or report.ok == (endpoint.failingSince == nil) then return change end
  change.health = report.ok and {} or { failingSince = report.at, noticeAt = report.noticeAt }
  return change
end

-- Decides if a settlement is recorded. A 2xx that was read is a fact, whoever reports it; anything
-- else counts only from the holder of the lease. A pending delivery is `p` or, while it is leased,
-- `l`; then `token` is that of its lease.
local function classifySettlement(state, token, outcome, by)
  if state == 'd' or state == 'w' then return 'gone' end
  if outcome == 'delivered' then return 'settled' end
  if state == 'f' then return 'gone' end
  return state == 'l' and token == by and 'settled' or 'stale'
end

-- Whose turn it is: endpoint.ts.

-- Returns the time by which a pending delivery is queued. Only one that is due already gets the head
-- start of a first attempt: any other would be served too early.
local function findQueueTime(startedAt, dueAt, extraAt, now)
  local at = extraAt or dueAt
  return (not startedAt and at <= now) and at - HEAD_START_MS or at
end

-- Returns how many deliveries the endpoint at `index`, from 0, may get in one round of a claim.
local function divideRoom(room, endpoints, index)
  return math.floor(room / endpoints) + (index < room % endpoints and 1 or 0)
end

-- Returns the place of an event, completed now, among those of its account: the first is freed first
-- if there are too many. `keepMs`: nil for the retention of all.
local function findFreePlace(now, keepMs)
  return keepMs and KEPT_FROM + now + keepMs or now
end

-- What becomes of an event that is appended: append.ts.

-- The subscriptions that match a type: the type itself, `prefix.*` for each of its prefixes, and
-- `*`. A roster has them between bars.
local function listPatterns(type)
  local all = { '|' .. type .. '|', '|*|' }
  for place in string.gmatch(type, '()%.') do all[#all + 1] = '|' .. string.sub(type, 1, place) .. '*|' end
  return all
end

local function subscribes(types, patterns)
  for _, pattern in ipairs(patterns) do
    if string.find(types, pattern, 1, true) then return true end
  end
  return false
end

-- True if a webhook gets an event with these patterns. `target`: the id of the only webhook that
-- gets a test; nil for any other event.
local function receives(webhook, patterns, target)
  if webhook.status ~= 'E' then return false end
  if target then return webhook.id == target end
  return subscribes(webhook.types, patterns)
end

-- The name of a webhook's filter, which follows the types of its subscription; nil without one.
local function getFilterName(types) return string.match(types, '|([^|]+)$') end

-- Decides about an event whose id is known: a repetition has the same digest.
local function compareKnown(known, digest) return known == digest and 'duplicate' or 'conflict' end

-- True if an event is stored. One that nobody gets is stored only if a webhook may recover it.
local function isKept(isTest, receivers, webhooks, retentionMs)
  return receivers > 0 or (not isTest and webhooks > 0 and retentionMs > 0)
end
