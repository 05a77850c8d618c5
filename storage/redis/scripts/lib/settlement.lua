-- What an attempt changes: storage/queue/endpoint.ts in Lua, its second half. `null` is nil here.
-- storage/queue/vectors.json proves the two equal.

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
