-- Decides vectors by the rules that come before this file: ARGV[1] is the name of a rule, ARGV[2] a
-- JSON list of what it is given. Replies the decisions as a JSON list.

local LANES, STATUSES = { f = 'fast', s = 'slow' }, { ENABLED = 'E', DISABLED = 'D' }
local STATES = { delivered = 'd', failed = 'f', withheld = 'w' }

local function orNull(value)
  if value == nil then return cjson.null end
  return value
end

local rules = {
  growSlowStart = function(g) return growSlowStart(g.slowStart, g.successes, g.perEndpoint) end,
  countFreeSlots = function(g) return countFreeSlots(g.slowStart, g.inFlight, g.perEndpoint) end,
  countLeft = function(g)
    local left = countLeft(g.perSecond, g.claimed, g.now)
    return left == math.huge and 'Infinity' or left
  end,
  findOpenTime = function(g) return findOpenTime(g.perSecond, g.claimed, g.now) end,
  addClaimed = function(g) return addClaimed(g.claimed, g.now, g.count) end,
  keepsTurn = function(g) return keepsTurn(g.readyAt, g.now) end,
  findReadyTime = function(g) return findReadyTime(g.head, g.freeSlots, g.openTime) end,
  isEarlier = function(g) return isEarlier(g.readyAt, g.before) end,
  applyReport = function(g)
    local endpoint = { generation = 2, status = STATUSES[g.status], slowStart = g.slowStart, failingSince = g.failingSince }
    local report = { ok = g.ok, generation = g.generation, at = 1767225600250, noticeAt = 1767225601250, lane = g.ok and 'f' or 's' }
    local change = applyReport(endpoint, report, g.attempts, 5)
    if not change then return nil end
    local health = change.health
    return {
      lane = LANES[change.lane], slowStart = orNull(change.slowStart),
      health = health and { failingSince = orNull(health.failingSince), warnedAt = cjson.null, noticeAt = orNull(health.noticeAt) } or cjson.null,
    }
  end,
  findQueueTime = function(g) return findQueueTime(g.startedAt, g.dueAt, g.extraAt, g.now) end,
  divideRoom = function(g) return divideRoom(g.room, g.endpoints, g.index) end,
  findFreePlace = function(g) return findFreePlace(g.now, g.keepMs) end,
  classifySettlement = function(g)
    return classifySettlement(STATES[g.state] or (g.token and 'l' or 'p'), g.token or '', g.outcome, g.by)
  end,
  -- `types` is what the record of an account has.
  receives = function(g)
    return receives({ id = 'one', status = STATUSES[g.status], types = g.types }, listPatterns(g.type), g.target)
  end,
  compareKnown = function(g) return compareKnown(g.known, g.digest) end,
  isKept = function(g) return isKept(g.isTest, g.receivers, g.webhooks, g.retentionMs) end,
}

local decisions = {}
for i, given in ipairs(cjson.decode(ARGV[2])) do
  for name, value in pairs(given) do
    if value == cjson.null then given[name] = nil end
  end
  decisions[i] = orNull(rules[ARGV[1]](given))
end
return cjson.encode(decisions)
