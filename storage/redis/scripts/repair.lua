-- Compares the books of a partition with what they count, and puts right what differs. Nothing should: a defect, a partial restore or a hand did it.
-- ARGV[5]: `counters` of the accounts that follow, or `places` of the deliveries that follow. Answers how much was put right.

goOnWhenFull()
local repaired = 0
local MOST_LEASES = 5000

local function repairInFlight()
  if call('ZCARD', LEASES) > MOST_LEASES then return end
  local counts = {}
  for _, ref in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    local w = webhookOf(ref)
    counts[w] = (counts[w] or 0) + 1
  end
  local known = call('HGETALL', IN_FLIGHT)
  for i = 1, #known, 2 do
    local w, right = known[i], counts[known[i]] or 0
    local e, own = endpoints.get(w), inFlight.get(w) or 0
    if not e then
      inFlight.delete(w)
    elseif own ~= right then
      lease(w, right - own)
      touched[w] = true
      repaired = repaired + 1
    end
  end
end

local function repairAccount(account)
  local isReadable, roster = pcall(rosterOf, account)
  if not isReadable or not roster then return end
  local right = 0
  for w in string.gmatch(roster.lines, '(%d+) [^\n]*\n') do
    local from, to = below(w)
    right = right + call('ZLEXCOUNT', QUEUE, from, to) + (inFlight.get(w) or 0)
  end
  local own = book(roster.a)
  local from, to = below(roster.a)
  local kept = call('ZLEXCOUNT', ENDED, from, to)
  if own.pending ~= right or own.ended ~= kept then
    repaired = repaired + 1
    count(roster.a, 'pending', right - own.pending)
    count(roster.a, 'ended', kept - own.ended)
  end
end

local function repairPlace(ref)
  local w = webhookOf(ref)
  local d = w and endpoints.get(w) and deliveries.get(ref)
  if not d or d.isBroken then return end
  local isQueued = call('ZSCORE', QUEUE, queueMember(ref, d.at))
  local isLeased = call('ZSCORE', LEASES, ref)
  if (d.state == 'l' and not isLeased) or (d.state == 'p' and not isQueued) then
    if d.state == 'l' then d.crashes = text(tonumber(d.crashes) + 1) end
    enqueue(ref, d)
    repaired = repaired + 1
  end
end

if ARGV[5] == 'counters' then
  repairInFlight()
  for i = 6, #ARGV do repairAccount(ARGV[i]) end
else
  for i = 6, #ARGV do repairPlace(ARGV[i]) end
end
flush()
return repaired
