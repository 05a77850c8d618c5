-- What a settlement does to its delivery: storage/queue/settlement.ts in Lua.
-- storage/queue/vectors.json proves the two equal.

-- Decides if a settlement is recorded. A 2xx that was read is a fact, whoever reports it; anything
-- else counts only from the holder of the lease. A pending delivery is `p` or, while it is leased,
-- `l`; then `token` is that of its lease.
local function classifySettlement(state, token, outcome, by)
  if state == 'd' or state == 'w' then return 'gone' end
  if outcome == 'delivered' then return 'settled' end
  if state == 'f' then return 'gone' end
  return state == 'l' and token == by and 'settled' or 'stale'
end
