-- The end of a general script: everything it changed is written to the keys.

local endedChange, byteChange = 0, 0

-- Writes all that the buffers hold. Every general script that changes something ends with it.
local function flush()
  deliveries.flush()
  queue.flush()
  leases.flush()
  log.flush()
  ended.flush()
  inFlight.flush()
  offerTouched()
  endpoints.flush()
  notices.flush()
  books.flush()
  tallies.flush()
  if endedChange ~= 0 then call('HINCRBY', META, 'ended', endedChange) end
  if byteChange ~= 0 then call('HINCRBY', META, 'bytes', text(byteChange)) end
  endedChange, byteChange = 0, 0
  if lastOrder then call('HSET', META, 'order', lastOrder) end
end
