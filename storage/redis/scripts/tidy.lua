-- Takes back what was leased by somebody who has not been heard of since, parks what cannot be
-- read, and frees what was kept long enough or is too many.
-- ARGV: accounts that keep too many events, as `A/account`, and leased references whose events
-- cannot be read, as `!reference`. Replies with what was parked, the mark of this data set, and the
-- accounts that still keep too many.

goOnWhenFull()
-- A key of another type, which somebody else made, has to be met before anything is changed.
call('HLEN', DELIVERIES)
call('HLEN', EVENTS)

local crowded = {}
for i = 5, #ARGV do
  local ref = string.match(ARGV[i], '^!(.*)$')
  local w = ref and webhookOf(ref)
  local e = w and endpoints.get(w)
  if e and call('ZSCORE', LEASES, ref) then
    parkLeased(ref, w, e, unreadable(e, ref) or 'payload_unreadable')
  elseif not ref then
    local a, account = string.match(ARGV[i], '^(%d+)/(.*)$')
    if a then
      endedIn[a] = account
      crowded[a] = ARGV[i]
    end
  end
end
reap()
tidy()
boundEnded()
flush()
local left = {}
for a, name in pairs(crowded) do
  if book(a).ended > keepEvents then left[#left + 1] = name end
end
return { parked, call('HGET', META, 'mark') or '', left }
