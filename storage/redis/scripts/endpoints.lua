-- Endpoints: the status, health, lane and slow start of a webhook, and how many of its deliveries
-- are leased.

local ENDPOINT = '^(%d+),([^,]*),(%a),(%d+),(%d+),(%d*),(%d*),(%d*),(%a),(%d*)(.*)$'

local function readEndpoint(value)
  local line, config = firstLine(value)
  local a, account, status, generation, updatedAt, failingSince, warnedAt, noticeAt, lane, slowStart, more =
    string.match(line, ENDPOINT)
  if not a then return nil end
  return {
    a = a, account = account, status = status, generation = generation, updatedAt = updatedAt,
    failingSince = failingSince, warnedAt = warnedAt, noticeAt = noticeAt, lane = lane, slowStart = slowStart,
    more = more, config = config,
  }
end

local function endpointText(e)
  return table.concat({
    e.a, e.account, e.status, e.generation, e.updatedAt, e.failingSince, e.warnedAt, e.noticeAt, e.lane, e.slowStart,
  }, ',') .. e.more .. e.config
end

local endpoints = records(WEBHOOKS, readEndpoint, endpointText)
local inFlight = records(IN_FLIGHT, tonumber, text)

local function lease(w, by)
  local count = (inFlight.get(w) or 0) + by
  if count > 0 then inFlight.set(w, count) else inFlight.delete(w) end
end

local function setNotice(w, e, at)
  e.noticeAt = at
  endpoints.set(w, e)
  if at == '' then notices.remove(w) else notices.add(w, at) end
end

local function clearHealth(w, e)
  e.failingSince, e.warnedAt = '', ''
  setNotice(w, e, '')
end

local function moveToLane(w, e, lane)
  if e.lane == lane then return end
  call('ZREM', READY[e.lane], w)
  e.lane = lane
  endpoints.set(w, e)
end

-- Stamps a change that users see. Each is later than the one before, also within one millisecond.
local function touch(w, e)
  e.updatedAt = text(math.max(now, tonumber(e.updatedAt) + 1))
  endpoints.set(w, e)
end
