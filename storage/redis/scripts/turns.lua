-- Turns of the endpoints: which of them may be served, from when on, and in which lane.

local function freeSlots(w, e) return countFreeSlots(tonumber(e.slowStart), inFlight.get(w) or 0, perEndpoint) end

-- `second,count` of each endpoint: how many of its deliveries were claimed in that second. Nil without
-- a limit.
local rates = perSecond and records(RATES, function(value)
  local second, count = string.match(value, '^(%d+),(%d+)$')
  return second and { second = tonumber(second), count = tonumber(count) }
end)

local function queueHead(w)
  local from, to = below(w)
  return call('ZRANGEBYLEX', QUEUE, from, to, 'LIMIT', 0, 1)[1]
end

-- The time in a member of the queue. Nil if something else put the member there.
local function timeOf(member) return tonumber(string.match(member, '^%d+/(%x+)/') or '', 16) end

-- The time in a score of the ready ones, which has a fraction for the turn. Nil without a score.
local function toReadyTime(score) return score and math.floor(tonumber(score)) or nil end

-- The earliest time at which this script made something due. The reply carries it, so that sleeping
-- workers are notified.
local notifyAt

local function notifyWorkers(at)
  if isEarlier(at, notifyAt) then notifyAt = at end
end

-- Endpoints whose queue or free slots have changed: when they may be served has to be worked out.
local touched = {}

local offer

function offer(w, e, readyAt)
  local head = queueHead(w)
  if not head or freeSlots(w, e) <= 0 then
    if readyAt then ready[e.lane].remove(w) end
    return
  end
  local headAt = timeOf(head)
  if not headAt then
    call('ZREM', QUEUE, head)
    return offer(w, e, readyAt)
  end
  local at = findReadyTime(headAt, freeSlots(w, e), findOpenTime(perSecond, rates and rates.get(w), now))
  ready[e.lane].add(w, text(at))
  if isEarlier(at, readyAt) then notifyWorkers(at) end
end

-- Works out when the touched endpoints may be served next.
local function offerTouched()
  local ws = {}
  for w in pairs(touched) do ws[#ws + 1] = w end
  touched = {}
  if #ws == 0 then return end
  if rates then rates.fetch(ws) end
  local fast, slow = call('ZMSCORE', FAST, unpack(ws)), call('ZMSCORE', SLOW, unpack(ws))
  for i, w in ipairs(ws) do
    local readyAt = toReadyTime(fast[i] or slow[i])
    if not keepsTurn(readyAt, now) then
      local e = endpoints.get(w)
      if e then offer(w, e, readyAt) end
    end
  end
  ready.f.flush()
  ready.s.flush()
end
