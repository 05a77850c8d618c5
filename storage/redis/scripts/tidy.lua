-- Takes back what was leased by somebody who has not been heard of since, parks what cannot be read, and frees what was kept long enough.
-- ARGV: accounts that keep too many events, as `A/account`. Replies with what was parked, and the mark of this data set.

goOnWhenFull()
-- A key of another type, which somebody else made, has to be met before anything is changed.
call('HLEN', DELIVERIES)
call('HLEN', EVENTS)

for i = 5, #ARGV do
  local a, account = string.match(ARGV[i], '^(%d+)/(.*)$')
  if a then endedIn[a] = account end
end
reap()
tidy()
boundEnded()
flush()
return { parked, call('HGET', META, 'mark') or '' }
