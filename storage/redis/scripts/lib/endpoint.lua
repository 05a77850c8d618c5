-- When an endpoint may be served, and with how many deliveries: storage/queue/endpoint.ts in Lua, in
-- the same order. `null` is nil here. storage/queue/vectors.json proves the two equal.

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
