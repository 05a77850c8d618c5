-- Leases the health notifications that are due, by postponing them. ARGV: lease until, most, nonce.
-- Replies with the records of the webhooks, and with when the next notification is due.

goOnWhenFull()
local leaseUntil, most, nonce = ARGV[5], tonumber(ARGV[6]), ARGV[7]
local taken, ws = {}, {}
-- The same call again, because its reply was lost.
for w in string.gmatch(findReply(nonce) or '', '%d+') do
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
if #ws > 0 then rememberReply(nonce, table.concat(ws, ' ')) end
return { taken, call('ZRANGE', NOTICES, 0, 0, 'WITHSCORES')[2] or '' }
