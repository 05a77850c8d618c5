-- Recovers deliveries whose lease has expired, fails deliveries that cannot be read, and frees data
-- whose retention is over or that an account has too much of.
--
-- ARGV: accounts that have too many completed events, as `A/account`, and leased references whose
-- events cannot be read, as `!reference`.
--
-- Replies with the deliveries that were failed, the mark of this data set, and the accounts that
-- still have too many events.

goOnWhenFull()
-- If something else created a key of another type, the script has to fail before its first change.
call('HLEN', DELIVERIES)
call('HLEN', EVENTS)

local crowded = {}
for i = 5, #ARGV do
  local ref = string.match(ARGV[i], '^!(.*)$')
  local w = ref and webhookOf(ref)
  local e = w and endpoints.get(w)
  if e and call('ZSCORE', LEASES, ref) then
    parkLeased(ref, w, e, findDefect(e, ref) or 'payload_unreadable')
  elseif not ref then
    local a, account = string.match(ARGV[i], '^(%d+)/(.*)$')
    if a then
      completedIn[a] = account
      crowded[a] = ARGV[i]
    end
  end
end
recoverExpired()
tidy()
freeExcess()
flush()
local left = {}
for a, name in pairs(crowded) do
  if book(a).ended > keepEvents then left[#left + 1] = name end
end
return { parked, call('HGET', META, 'mark') or '', left }
