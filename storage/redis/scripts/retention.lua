-- Completed events: how one is recorded, how long it is kept, and how it is freed.

-- `<open deliveries>,<completed at>,<later deliveries>`. An event without this record is open, with
-- all the deliveries that it was stored with.
local progresses = records(PROGRESS, function(value)
  local open, endedAt, later = string.match(value, '^(%d+),(%d*),(.*)$')
  return { open = tonumber(open) or 0, endedAt = endedAt or '', later = later or '' }
end, function(p) return text(p.open) .. ',' .. p.endedAt .. ',' .. p.later end)

local function getProgress(a, ek, receivers)
  return progresses.get(a .. '/' .. ek) or { open = receivers, endedAt = '', later = '' }
end

local function saveProgress(a, ek, p) progresses.set(a .. '/' .. ek, p) end

local function endedMember(a, ek, endedAt) return a .. '/' .. hex(tonumber(endedAt)) .. '/' .. ek end

local function isBelow(key, prefix)
  local from, to = below(prefix)
  return call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, 1)[1]
end

-- Deletes an account that has neither webhooks nor events.
local function dropIfEmpty(a, account)
  local roster = call('HGET', ACCOUNTS, account)
  if roster == a .. '\n' and not isBelow(LOG, a) and not isBelow(ENDED, a) then
    call('HDEL', ACCOUNTS, account)
    call('ZREM', FREEING, a .. '/' .. account)
  end
end

local function freeDelivery(ref)
  local d = deliveries.get(ref)
  if not d then return nil end
  deliveries.delete(ref)
  endedChange = endedChange - 1
  tally(webhookOf(ref), d, -1)
  return d
end

-- Frees an event without open deliveries: its deliveries, its entries of the log, and the event
-- itself. Returns what this costs against a bound: 1, and 1 for each later delivery. An event may
-- have a hundred later deliveries to each webhook.
local function freeEvent(a, account, ek)
  local value = call('HGET', EVENTS, a .. '/' .. ek)
  local event = value and readEvent(value)
  local progress = getProgress(a, ek, event and event.count or 0)
  -- Without its record the entry of the log cannot be found. `check()` removes that entry.
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

-- Names of the accounts, by number, in which this script completed events.
local completedIn = {}

-- Starts the retention of an event without open deliveries.
local function completeEvent(a, account, ek, progress)
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
  completedIn[a] = account
end

-- Frees the oldest completed events of accounts that have too many. It runs before `flush`, because
-- it needs what `flush` has not written yet.
local function freeExcess()
  log.flush()
  progresses.flush()
  ended.flush()
  local members = {}
  for a, account in pairs(completedIn) do members[#members + 1] = a .. '/' .. account end
  if #members == 0 then return end
  local new = {}
  for i, known in ipairs(call('ZMSCORE', FREEING, unpack(members))) do
    if not known then
      new[#new + 1] = text(now + keepMs)
      new[#new + 1] = members[i]
    end
  end
  callMany('ZADD', FREEING, new)
  for a, account in pairs(completedIn) do
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
  completedIn = {}
  progresses.flush()
end

-- Completing a delivery, and its event with it.

-- Counts a delivery that is not open any more. With its last open delivery the event is completed.
local function closeDelivery(a, account, ek, receivers)
  local progress = getProgress(a, ek, receivers)
  progress.open = math.max(0, progress.open - 1)
  count(a, 'pending', -1)
  if progress.open == 0 then completeEvent(a, account, ek, progress) else saveProgress(a, ek, progress) end
end

-- Completes a delivery. A failed delivery may still be reported as delivered later.
local function completeDelivery(e, ref, d, state, reason)
  local wasOpen = isOpen(d)
  local w = webhookOf(ref)
  if not wasOpen then tally(w, d, -1) end
  d.state, d.reason, d.endedAt, d.extraAt = state, reason, text(now), ''
  tally(w, d, 1)
  deliveries.set(ref, d)
  local ek = eventOf(ref)
  if wasOpen then
    endedChange = endedChange + 1
    closeDelivery(e.a, e.account, ek, d.receivers)
  else
    local progress = getProgress(e.a, ek, d.receivers)
    if progress.open == 0 then completeEvent(e.a, e.account, ek, progress) end
  end
end
