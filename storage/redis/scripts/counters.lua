-- Counters that are kept with the data: the books of accounts and the tallies of webhooks.

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

-- `<delivered>,<failed>,<withheld>` of the completed deliveries kept for each webhook. Its last
-- attempt follows, which only Node reads.
local tallies = records(TALLIES, function(value)
  local delivered, failed, withheld, last = string.match(value, '^(%d+),(%d+),(%d+)\n(.*)$')
  return { d = tonumber(delivered) or 0, f = tonumber(failed) or 0, w = tonumber(withheld) or 0, last = last or '' }
end, function(tally) return text(tally.d) .. ',' .. text(tally.f) .. ',' .. text(tally.w) .. '\n' .. tally.last end)

local function getTally(w) return tallies.get(w) or { d = 0, f = 0, w = 0, last = '' } end

-- Adds `by` to the tally of completed deliveries in a state. Deliveries that a removed webhook left
-- behind are not counted.
local function tally(w, state, by)
  if not endpoints.get(w) then return end
  local own = getTally(w)
  if not own[state] then return end
  own[state] = math.max(0, own[state] + by)
  tallies.set(w, own)
end
