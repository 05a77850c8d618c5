-- Leases due deliveries. Options: token, leaseUntil, fast and slow: the room in each lane. Replies as
-- lib/claim.lua describes.

goOnWhenFull()
checkTypes({ READY.f, READY.s }, { DELIVERIES, RATES })
meta:fetch({ 'dataSet', 'turn' })
return claim(options)
