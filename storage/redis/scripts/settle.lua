-- Records the results of claims: every case that settle-and-claim.lua leaves to it.
--
-- ARGV, for each settlement: account, webhook's id, the suffix of the delivery, token, nonce, its
-- time, state, reason, step, due, postponed, crashes, extra at, started at, attempt, its summary,
-- how long it took; then the report on the endpoint: `1`, `0` or empty, generation, time, notice at, lane;
-- last the sketch of how long the attempt took.
--
-- Replies `settled`, `stale` or `gone` for each settlement. The last element is the time that
-- workers are notified of.

goOnWhenFull()

local FIELDS = 23
local OUTCOMES = { delivered = 'd', failed = 'f', withheld = 'w' }

-- All records that the settlements are about, read at once.
local ids = {}
for i = 5, #ARGV, FIELDS do ids[#ids + 1] = ARGV[i + 1] end
local numbers = {}
for i, w in ipairs(call('HMGET', IDS, unpack(ids))) do numbers[ids[i]] = w end
local ws, refs = {}, {}
for i = 5, #ARGV, FIELDS do
  local w = numbers[ARGV[i + 1]]
  if w then
    ws[#ws + 1] = w
    refs[#refs + 1] = w .. '/' .. ARGV[i + 2]
  end
end
endpoints.fetch(ws)
inFlight.fetch(ws)
tallies.fetch(ws)
deliveries.fetch(refs)
local events, accounts = {}, {}
for i, w in ipairs(ws) do
  local e = endpoints.get(w)
  if e then
    accounts[#accounts + 1] = e.a
    events[#events + 1] = e.a .. '/' .. eventOf(refs[i])
  end
end
progresses.fetch(events)
books.fetch(accounts)

-- `ok`: what the attempt says about the endpoint, `1` or `0`; empty for a failed test.
local function record(w, d, attempt, short, durationMs, ok, sketch)
  local own = getTally(w)
  own.last = short
  if ok ~= '' then
    own.recent = addRecent(w, own.recent, ok == '1' and 1 or 0, ok == '1' and 0 or 1, ok == '1' and durationMs or 0, sketch)
  end
  tallies.set(w, own)
  d.attempts = d.attempts .. '\n' .. attempt
  d.tries = d.tries + 1
  if d.tries > MAX_ATTEMPTS then
    -- In parentheses, because find also returns the end of the match, which sub would take as its
    -- end.
    d.attempts = string.sub(d.attempts, (string.find(d.attempts, '\n', 2, true)))
    d.tries = MAX_ATTEMPTS
  end
end

-- Changes an endpoint as the report of an attempt says.
local function changeEndpoint(w, e, report)
  local change = applyReport({
    generation = e.generation, status = e.status, slowStart = tonumber(e.slowStart), failingSince = tonumber(e.failingSince),
  }, report, 1, perEndpoint)
  if not change then return end
  moveToLane(w, e, change.lane)
  local slowStart = change.slowStart and text(change.slowStart) or ''
  if slowStart ~= e.slowStart then
    e.slowStart = slowStart
    endpoints.set(w, e)
  end
  if change.health then
    e.failingSince, e.warnedAt = change.health.failingSince or '', ''
    setNotice(w, e, change.health.noticeAt or '')
    if change.health.noticeAt then notifyWorkers(tonumber(change.health.noticeAt)) end
  end
end

local function settle(i)
  local account, id, suffix, token, nonce = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  now = tonumber(ARGV[i + 5])
  local state = OUTCOMES[ARGV[i + 6]]
  local w = numbers[id]
  local e = w and endpoints.get(w)
  if not e or e.account ~= account then return 'gone' end
  local ref = w .. '/' .. suffix
  local d = delivery(e.a, ref)
  if not d or d.isBroken then return 'gone' end
  -- The same call again, because its reply was lost.
  if d.state ~= 'l' and d.token == nonce then return 'settled' end
  local result = classifySettlement(d.state, d.token, ARGV[i + 6], token)
  if result ~= 'settled' then return result end

  if d.state == 'l' then
    leases.remove(ref)
    lease(w, -1)
  elseif d.state == 'p' then
    queue.remove(queueMember(ref, d.at))
  end
  d.token, d.recovered = nonce, '0'
  if ARGV[i + 13] ~= '' then d.startedAt = ARGV[i + 13] end
  if ARGV[i + 14] ~= '' then record(w, d, ARGV[i + 14], ARGV[i + 15], ARGV[i + 16], ARGV[i + 17], ARGV[i + 22]) end
  if ARGV[i + 17] ~= '' then
    changeEndpoint(w, e, {
      ok = ARGV[i + 17] == '1', generation = ARGV[i + 18], at = ARGV[i + 19], noticeAt = ARGV[i + 20], lane = ARGV[i + 21],
    })
  end
  if state then
    completeDelivery(e, ref, d, state, ARGV[i + 7])
  else
    d.step, d.dueAt, d.postponed, d.crashes, d.extraAt =
      ARGV[i + 8], ARGV[i + 9], ARGV[i + 10], ARGV[i + 11], ARGV[i + 12]
    enqueue(ref, d)
  end
  touched[w] = true
  return 'settled'
end

local replies = {}
for i = 5, #ARGV, FIELDS do replies[#replies + 1] = settle(i) end
freeExcess()
flush()
replies[#replies + 1] = notifyAt and text(notifyAt) or ''
return replies
