-- Leases the health steps that are due, by putting them off. ARGV: lease until, most.
-- Answers the webhooks' texts, and when the next step is due.

goOnWhenFull()
local leaseUntil, most = ARGV[5], tonumber(ARGV[6])
local taken = {}
for _, w in ipairs(call('ZRANGEBYSCORE', NOTICES, '-inf', text(now), 'LIMIT', 0, most)) do
  local e = endpoints.get(w)
  if e then
    setNotice(w, e, leaseUntil)
    taken[#taken + 1] = endpointText(e)
  else
    call('ZREM', NOTICES, w)
  end
end
flush()
return { taken, call('ZRANGE', NOTICES, 0, 0, 'WITHSCORES')[2] or '' }
