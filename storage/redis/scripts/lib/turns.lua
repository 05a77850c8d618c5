-- Whose turn it is: storage/queue/turns.ts in Lua, in the same order. `null` is nil here.
-- storage/queue/vectors.json proves the two equal.

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
