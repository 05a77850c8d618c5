-- Leases the health steps that are due, by putting them off. ARGV: lease until, most, nonce.
-- Answers the webhooks' texts, and when the next step is due.

goOnWhenFull()
local leaseUntil, most, nonce = ARGV[5], tonumber(ARGV[6]), ARGV[7]
local taken, ws = {}, {}
-- The same call once more, since its answer was lost.
for w in string.gmatch(answerOf(nonce) or '', '%d+') do
  local e = endpoints.get(w)
  if e then taken[#taken + 1] = endpointText(e) end
end
if #taken > 0 then most = 0 end
for _, w in ipairs(call('ZRANGEBYSCORE', NOTICES, '-inf', text(now), 'LIMIT', 0, most)) do
  local e = endpoints.get(w)
  if e then
    setNotice(w, e, leaseUntil)
    taken[#taken + 1] = endpointText(e)
    ws[#ws + 1] = w
  else
    call('ZREM', NOTICES, w)
  end
end
flush()
if #ws > 0 then rememberAnswer(nonce, table.concat(ws, ' ')) end
return { taken, call('ZRANGE', NOTICES, 0, 0, 'WITHSCORES')[2] or '' }
