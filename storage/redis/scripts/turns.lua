-- Turns of the endpoints: which of them may be served, from when on, and in which lane.

local function freeSlots(w, e)
  local most = perEndpoint
  if e.slowStart ~= '' then most = math.min(most, tonumber(e.slowStart)) end
  return most - (inFlight.get(w) or 0)
end

-- `second,count` of each endpoint: how many of its deliveries were claimed in that second. Nil without
-- a limit. storage/endpoint-limits.ts has the rules.
local MOST_SECONDS_AHEAD = 60
local rates = perSecond and records(RATES, function(value)
  local second, claimed = string.match(value, '^(%d+),(%d+)$')
  return second and { second = tonumber(second), claimed = tonumber(claimed) }
end)

-- When the rate allows the next claim: when the next second begins, or 0 for now.
local function opensAt(w)
  local own = rates and rates.get(w)
  local second = math.floor(now / 1000)
  if not own or own.claimed < perSecond or own.second < second or own.second > second + MOST_SECONDS_AHEAD then
    return 0
  end
  return (own.second + 1) * 1000
end

local function queueHead(w)
  local from, to = below(w)
  return call('ZRANGEBYLEX', QUEUE, from, to, 'LIMIT', 0, 1)[1]
end

-- The time in a member of the queue. Nil if something else put the member there.
local function timeOf(member) return tonumber(string.match(member, '^%d+/(%x+)/') or '', 16) end

-- The earliest time at which this script made something due. The reply carries it, so that sleeping
-- workers are notified.
local notifyAt

local function notifyWorkers(at)
  if not notifyAt or at < notifyAt then notifyAt = at end
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
  local at = math.max(headAt, now, opensAt(w))
  ready[e.lane].add(w, text(at))
  if not readyAt or at < readyAt then notifyWorkers(at) end
end

-- Works out when the touched endpoints may be served next. An endpoint that is already due keeps
-- its place among the ready ones.
local function offerTouched()
  local ws = {}
  for w in pairs(touched) do ws[#ws + 1] = w end
  touched = {}
  if #ws == 0 then return end
  if rates then rates.fetch(ws) end
  local fast, slow = call('ZMSCORE', FAST, unpack(ws)), call('ZMSCORE', SLOW, unpack(ws))
  for i, w in ipairs(ws) do
    local readyAt = tonumber(fast[i] or slow[i] or nil)
    if not readyAt or readyAt >= now + 1 then
      local e = endpoints.get(w)
      if e then offer(w, e, readyAt) end
    end
  end
  ready.f.flush()
  ready.s.flush()
end
