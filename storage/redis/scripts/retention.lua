-- How deliveries and events end, and how long what has ended is kept.

-- `<open deliveries>,<when it ended>,<later deliveries>`; an event without one is open with all that it was made with.
local progresses = records(PROGRESS, function(value)
  local open, endedAt, later = string.match(value, '^(%d+),(%d*),(.*)$')
  return { open = tonumber(open) or 0, endedAt = endedAt or '', later = later or '' }
end, function(p) return text(p.open) .. ',' .. p.endedAt .. ',' .. p.later end)

local function progressOf(a, ek, receivers)
  return progresses.get(a .. '/' .. ek) or { open = receivers, endedAt = '', later = '' }
end

local function saveProgress(a, ek, p) progresses.set(a .. '/' .. ek, p) end

local function endedMember(a, ek, endedAt) return a .. '/' .. hex(tonumber(endedAt)) .. '/' .. ek end

local function isBelow(key, prefix)
  local from, to = below(prefix)
  return call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, 1)[1]
end

-- Drops an account that holds nothing any more.
local function dropIfEmpty(a, account)
  local roster = call('HGET', ACCOUNTS, account)
  if roster == a .. '\n' and not isBelow(LOG, a) and not isBelow(ENDED, a) then
    call('HDEL', ACCOUNTS, account)
    call('ZREM', FREEING, a .. '/' .. account)
  end
end

local function remember(field, value, expiresAt)
  call('HSET', REMEMBERED, field, value)
  call('ZADD', FORGETTING, text(expiresAt), field)
end

-- The answer of a call that cannot see by itself that it was made before: kept for as long as a client may send it again.
local ANSWER_KEPT_MS = 600000

local function answerOf(nonce) return call('HGET', REMEMBERED, 'a/' .. nonce) end
local function rememberAnswer(nonce, answer) remember('a/' .. nonce, answer, now + ANSWER_KEPT_MS) end

local function freeDelivery(ref)
  local d = deliveries.get(ref)
  if not d then return nil end
  deliveries.delete(ref)
  endedChange = endedChange - 1
  tally(webhookOf(ref), d.state, -1)
  return d
end

-- Frees an event with no open delivery: its deliveries, its places in the log, and in the end itself.
-- Returns what that counts against a bound: 1, and 1 for each later delivery, since an event may have a hundred to each webhook.
local function freeEvent(a, account, ek)
  local value = call('HGET', EVENTS, a .. '/' .. ek)
  local event = value and readEvent(value)
  local progress = progressOf(a, ek, event and event.count or 0)
  -- Without its text nobody knows its place in the log any more: `check()` clears that.
  local entry = event and isBelow(LOG, a .. '/' .. event.order)
  if entry then
    for w in string.gmatch(string.match(entry, '[^/]*$'), '%d+') do freeDelivery(w .. '/' .. ek) end
    log.remove(entry)
  end
  local cost = 1
  for w, serial in string.gmatch(progress.later, '(%d+)%.(%d+)') do
    cost = cost + 1
    local d = freeDelivery(w .. '/' .. ek .. (serial == '0' and '' or '.' .. serial))
    local own = d and d.order and isBelow(LOG, a .. '/' .. d.order)
    if own then log.remove(own) end
  end
  if progress.endedAt ~= '' then
    ended.remove(endedMember(a, ek, progress.endedAt))
    count(a, 'ended', -1)
  end
  progresses.delete(a .. '/' .. ek)
  if not event then return cost end
  call('HDEL', EVENTS, a .. '/' .. ek)
  readEvents[a .. '/' .. ek] = nil
  byteChange = byteChange - #value
  if event.rememberUntil > now then
    local known = table.concat({ text(event.rememberUntil), event.nonce, event.receivers, event.digest }, '\n')
    remember('e/' .. ek .. '/' .. account, known, event.rememberUntil)
  end
  return cost
end

-- Accounts in which events ended in this script.
local endedIn = {}

-- Starts the retention of an event with no open delivery.
local function endEvent(a, account, ek, progress)
  if keepMs == 0 then
    freeEvent(a, account, ek)
    return
  end
  if progress.endedAt ~= '' then
    ended.remove(endedMember(a, ek, progress.endedAt))
  else
    count(a, 'ended', 1)
  end
  progress.endedAt = text(now)
  saveProgress(a, ek, progress)
  ended.add(endedMember(a, ek, progress.endedAt), 0)
  endedIn[a] = account
end

-- Lets the oldest events go where an account has too many that have ended. Goes before `flush`, and looks at what that has not written yet.
local function boundEnded()
  log.flush()
  progresses.flush()
  ended.flush()
  local members = {}
  for a, account in pairs(endedIn) do members[#members + 1] = a .. '/' .. account end
  if #members == 0 then return end
  local new = {}
  for i, known in ipairs(call('ZMSCORE', FREEING, unpack(members))) do
    if not known then
      new[#new + 1] = text(now + keepMs)
      new[#new + 1] = members[i]
    end
  end
  callMany('ZADD', FREEING, new)
  for a, account in pairs(endedIn) do
    local extra = book(a).ended - keepEvents
    if extra > 0 then
      local from, to = below(a)
      local cost = 0
      for _, member in ipairs(call('ZRANGEBYLEX', ENDED, from, to, 'LIMIT', 0, math.min(extra, 100))) do
        cost = cost + freeEvent(a, account, string.match(member, '[^/]+$'))
        if cost >= 100 then break end
      end
    end
  end
  endedIn = {}
  progresses.flush()
end

-- A delivery that is not open any more: counts it, and ends its event with the last one.
local function closeDelivery(a, account, ek, receivers)
  local progress = progressOf(a, ek, receivers)
  progress.open = math.max(0, progress.open - 1)
  count(a, 'pending', -1)
  if progress.open == 0 then endEvent(a, account, ek, progress) else saveProgress(a, ek, progress) end
end

-- Ends a delivery; a failed one may still turn out to be delivered.
local function endDelivery(e, ref, d, state, reason)
  local wasOpen = isOpen(d)
  local w = webhookOf(ref)
  if not wasOpen then tally(w, d.state, -1) end
  tally(w, state, 1)
  d.state, d.reason, d.endedAt, d.extraAt = state, reason, text(now), ''
  deliveries.set(ref, d)
  local ek = eventOf(ref)
  if wasOpen then
    endedChange = endedChange + 1
    closeDelivery(e.a, e.account, ek, d.receivers)
  else
    local progress = progressOf(e.a, ek, d.receivers)
    if progress.open == 0 then endEvent(e.a, e.account, ek, progress) end
  end
end

-- Removes a delivery of a webhook that is being removed, without a trace.
local function forget(a, account, ref)
  local d = delivery(a, ref)
  if not d then return end
  deliveries.delete(ref)
  if d.state == 'p' then queue.remove(queueMember(ref, d.at)) end
  if d.state == 'l' then leases.remove(ref) end
  if isOpen(d) then closeDelivery(a, account, eventOf(ref), d.receivers) else endedChange = endedChange - 1 end
end

local CLEANED_PER_PAGE = 100

-- Frees one page of what a removed webhook held. A later call goes on after `order`.
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
  boundEnded()
  log.flush()
  if #entries == CLEANED_PER_PAGE then
    call('HSET', REMOVALS, w, a .. ',' .. account .. ',' .. order)
  else
    call('HDEL', REMOVALS, w)
    dropIfEmpty(a, account)
  end
end

local FREED_PER_CALL = 200

-- Frees the events of an account that have been kept long enough, until they cost `most`, at least one; returns what they cost.
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

local function forgetSome(most)
  local forgotten = call('ZRANGEBYSCORE', FORGETTING, '-inf', text(now), 'LIMIT', 0, most)
  callMany('HDEL', REMEMBERED, forgotten)
  callMany('ZREM', FORGETTING, forgotten)
end

-- Frees what has been kept long enough, some at a time, so that no single call pays for a large clean-up.
local function tidy()
  local left = FREED_PER_CALL
  for _, member in ipairs(call('ZRANGEBYSCORE', FREEING, '-inf', text(now), 'LIMIT', 0, 20)) do
    if left > 0 then left = left - freeKept(member, left) end
  end
  forgetSome(FREED_PER_CALL)
  local removed = call('HRANDFIELD', REMOVALS, 1, 'WITHVALUES')
  if removed[1] then cleanRemoved(removed[1], removed[2]) end
end
