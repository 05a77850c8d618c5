-- Counters that are kept with the data: the books of accounts and the tallies of webhooks. `flush`
-- at the end writes what a script changed.

-- `<pending deliveries>,<completed events>` of each account that has any.
local books = records(BOOKS, function(value)
  local pending, kept = string.match(value, '^(%d+),(%d+)')
  return { pending = tonumber(pending) or 0, ended = tonumber(kept) or 0 }
end, function(book) return text(book.pending) .. ',' .. text(book.ended) end)

local function book(a) return books.get(a) or { pending = 0, ended = 0 } end

local function count(a, what, by)
  local own = book(a)
  own[what] = math.max(0, own[what] + by)
  if own.pending == 0 and own.ended == 0 then books.delete(a) else books.set(a, own) end
end

-- `<delivered>,<failed>,<withheld>,<failed tests>` of the completed deliveries kept for each
-- webhook; failed tests count as failed, too. Lines follow that only Node and recent.lua read: its
-- last attempt, and its attempts of the newest hour.
local tallies = records(TALLIES, function(value)
  local counts, last, recent = string.match(value, '^([^\n]*)\n([^\n]*)\n?(.*)$')
  local d, f, w, t = string.match(counts or '', '^(%d+),(%d+),(%d+),?(%d*)$')
  return {
    d = tonumber(d) or 0, f = tonumber(f) or 0, w = tonumber(w) or 0, t = tonumber(t) or 0,
    last = last or '', recent = recent or '',
  }
end, function(tally)
  return table.concat({ text(tally.d), text(tally.f), text(tally.w), text(tally.t) }, ',')
    .. '\n' .. tally.last .. '\n' .. tally.recent
end)

local function getTally(w) return tallies.get(w) or { d = 0, f = 0, w = 0, t = 0, last = '', recent = '' } end

-- The reason of a test that the endpoint did not accept.
local TEST_FAILED = 'test_failed'

-- Adds `by` to the tally of a completed delivery. Deliveries that a removed webhook left behind are
-- not counted.
local function tally(w, d, by)
  if not endpoints.get(w) then return end
  local own = getTally(w)
  if not own[d.state] then return end
  own[d.state] = math.max(0, own[d.state] + by)
  if d.state == 'f' and d.reason == TEST_FAILED then own.t = math.max(0, own.t + by) end
  tallies.set(w, own)
end

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
