-- Freeing, page by page, what has expired and what removed webhooks held.

-- Deletes a delivery of a removed webhook.
local function forget(a, account, ref)
  local d = delivery(a, ref)
  if not d then return end
  deliveries.delete(ref)
  if d.state == 'p' then queue.remove(queueMember(ref, d.at)) end
  if d.state == 'l' then leases.remove(ref) end
  if isOpen(d) then closeDelivery(a, account, eventOf(ref), d.receivers) else endedChange = endedChange - 1 end
end

local CLEANED_PER_PAGE = 100

-- Frees one page of the deliveries of a removed webhook. A later call continues after `order`.
local function cleanRemoved(w, removal)
  local a, account, order = string.match(removal, '^(%d+),([^,]*),(%x*)$')
  if not a then
    call('HDEL', REMOVALS, w)
    return
  end
  local from, to = below(a)
  if order ~= '' then from = '[' .. a .. '/' .. order .. '0' end
  local entries = call('ZRANGEBYLEX', LOG, from, to, 'LIMIT', 0, CLEANED_PER_PAGE)
  for _, entry in ipairs(entries) do
    local at, ek, receivers = string.match(entry, '^%d+/(%x+)/([^/]+)/[^/]*/(.*)$')
    order = at
    for own, serial in string.gmatch(receivers, '(%d+)(%.?%d*)') do
      if own == w then
        forget(a, account, w .. '/' .. ek .. (serial == '.0' and '' or serial))
        if serial ~= '' then log.remove(entry) end
      end
    end
  end
  freeExcess()
  log.flush()
  if #entries == CLEANED_PER_PAGE then
    call('HSET', REMOVALS, w, a .. ',' .. account .. ',' .. order)
  else
    call('HDEL', REMOVALS, w)
    dropIfEmpty(a, account)
  end
end

local FREED_PER_CALL = 200

-- Frees events of an account whose retention is over, until they cost `most`, but at least one
-- event. Returns their cost.
local function freeKept(member, most)
  local a, account = string.match(member, '^(%d+)/(.*)$')
  if not a then
    call('ZREM', FREEING, member)
    return 0
  end
  local from, to = below(a)
  local kept = call('ZRANGEBYLEX', ENDED, from, to, 'LIMIT', 0, most + 1)
  local freed, cost = 0, 0
  for _, own in ipairs(kept) do
    local at, ek = string.match(own, '^%d+/(%x+)/(.+)$')
    local freeAt = at and tonumber(at, 16) + keepMs or 0
    if cost >= most or freeAt > now then
      call('ZADD', FREEING, text(freeAt), member)
      break
    end
    cost = cost + (ek and freeEvent(a, account, ek) or 1)
    ended.remove(own)
    freed = freed + 1
  end
  progresses.flush()
  log.flush()
  ended.flush()
  if freed == #kept then
    call('ZREM', FREEING, member)
    dropIfEmpty(a, account)
  end
  return cost
end

-- Frees data whose retention is over. Each call frees a bounded part, so that no call pays for a
-- large clean-up.
local function tidy()
  local left = FREED_PER_CALL
  for _, member in ipairs(call('ZRANGEBYSCORE', FREEING, '-inf', text(now), 'LIMIT', 0, 20)) do
    if left > 0 then left = left - freeKept(member, left) end
  end
  forgetSome(FREED_PER_CALL)
  local removed = call('HRANDFIELD', REMOVALS, 1, 'WITHVALUES')
  if removed[1] then cleanRemoved(removed[1], removed[2]) end
end
