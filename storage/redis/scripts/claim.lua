-- Leases what is due, after giving back what was leased by somebody who has not been heard of since.
-- ARGV: token, lease until, room in the fast lane, room in the slow lane. Answers as `claimDue`.

goOnWhenFull()
-- A key of another type, which somebody else made, has to be met before anything is taken out of the queue.
call('HLEN', DELIVERIES)
call('HLEN', EVENTS)

reap()
tidy()
flush()
return claimDue(ARGV[5], ARGV[6], { f = tonumber(ARGV[7]), s = tonumber(ARGV[8]) })
