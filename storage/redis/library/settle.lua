-- Records the results of claims. Options: nonce, and webhooks: id and account of each.
--
-- Items, four for each settlement: the place of its webhook, the suffix of the delivery, the token of
-- the lease, and the result. For a success that reports on the endpoint the result is
-- `generation,lane,ms,sketch,startedAt,completedAt⏎attempt`, so that most deliveries need one match.
-- Otherwise it is JSON: outcome, reason, step, dueAt, postponed, crashes, extraAt, startedAt; attempt,
-- summary, ms, sketch; and report, on the endpoint: ok, generation, at, noticeAt, lane.
--
-- Replies the result of each settlement, the time that workers are notified of, and the accounts that
-- have too many completed events.

local OUTCOMES = { delivered = 'd', failed = 'f', withheld = 'w' }
local SUCCESS = '^(%d+),([fs]),(%d+),(%l%l%d+),(.*)$'

-- The attempts of a webhook by the hour. Its counts end with the newest hour, and a sketch of the
-- durations on a line of its own: `<hour> <succeeded> <failed> <ms>;`, where `ms` is how long those
-- that succeeded took. storage/queue/recent-attempts.ts has the rules, and describes sketches.

-- The most characters of a sketch that is added entry by entry.
local FEW_ENTRIES = 9

-- How many attempts each class of a sketch has, the names in ascending order, and the sum.
local function countClasses(sketch)
  local counts, names, total = {}, {}, 0
  for name, count in string.gmatch(sketch, '(%l%l)(%d+)') do
    if not counts[name] then names[#names + 1] = name end
    counts[name] = (counts[name] or 0) + count
    total = total + count
  end
  table.sort(names)
  return counts, names, total
end

-- Adds to the sketch at the end of a text: a few entries to those of their classes, many by
-- appending them, which takes less time.
local function addToSketch(value, added)
  local from, length = 1, #added
  if length > FEW_ENTRIES then
    value = value .. added
    if #value <= MAX_SKETCH_CHARACTERS then return value end
    local feed = string.find(value, '\n', 1, true)
    local counts, names = countClasses(string.sub(value, feed + 1))
    for i, name in ipairs(names) do names[i] = name .. counts[name] end
    return string.sub(value, 1, feed) .. table.concat(names)
  end
  while from <= length do
    local name, count = string.sub(added, from, from + 1), string.match(added, '^%d+', from + 2)
    local at = string.find(value, name, 1, true)
    if at then
      local before = string.match(value, '^%d*', at + 2)
      local sum = (tonumber(before) or 0) + count
      value = string.sub(value, 1, at + 1) .. sum .. string.sub(value, at + 2 + #before)
    else
      value = value .. name .. count
    end
    from = from + 2 + #count
  end
  return value
end

-- The classes of the quantiles.
local function readQuantiles(sketch)
  local counts, names, total = countClasses(sketch)
  local p50, p95, reached = nil, nil, 0
  for _, name in ipairs(names) do
    reached = reached + counts[name]
    if reached * 100 >= total * 50 then p50 = p50 or name end
    if reached * 100 >= total * 95 then p95 = p95 or name end
  end
  return ' ' .. (p50 or '-') .. ' ' .. (p95 or '-')
end

-- Keeps an hour that is over, after those before, in the field `W/h`.
local function keepHours(webhook, ended)
  local past = (webhookCounts:text(webhook .. '/h') or '') .. ended
  local _, count = string.gsub(past, ';', '')
  for _ = MAX_HOURS, count do past = string.sub(past, (string.find(past, ';', 1, true)) + 1) end
  webhookCounts:setText(webhook .. '/h', past)
end

-- Adds attempts, with the sketch of their durations, and returns the new end of the counts. All
-- numbers are integers below 1e14, which Lua converts itself, in less time than `text`.
local function addRecent(webhook, recent, succeeded, failed, durationMs, added)
  local hour = math.floor(now / MS_PER_HOUR)
  local newest, ok, bad, ms, tailAt = string.match(recent, '^(%d+) (%d+) (%d+) (%d+);()')
  -- A clock that went back counts in the newest hour.
  if newest and tonumber(newest) >= hour then
    return newest .. ' ' .. (ok + succeeded) .. ' ' .. (bad + failed) .. ' ' .. (ms + durationMs) .. ';'
      .. addToSketch(string.sub(recent, tailAt), added)
  end
  local ended, sketch = string.match(recent, '^(%d+ %d+ %d+ %d+);\n?(.*)$')
  if ended then keepHours(webhook, ended .. readQuantiles(sketch) .. ';') end
  return hour .. ' ' .. succeeded .. ' ' .. failed .. ' ' .. durationMs .. ';\n' .. added
end

-- By its place: a webhook, and what its settlements add to its counts. Nil if the account has no such
-- webhook. All of these are of one call.
local sources
-- For each settlement, by the place of its first item: the names of its delivery and its event.
local refs, eventFields
-- Deliveries that this call has settled: another result for one is no repetition of the call.
local settled

local function readSources()
  sources = {}
  local ids, numbers, accounts = {}, {}, {}
  for i, webhook in ipairs(options.webhooks) do ids[i] = webhook.id end
  for i, number in ipairs(call('HMGET', keys.ids, unpack(ids))) do
    if number then
      numbers[#numbers + 1] = number
      sources[i] = {
        webhook = number, ended = 0, delivered = 0, completed = 0, succeeded = 0, failed = 0, ms = 0,
        sketches = {},
      }
    end
  end
  fetchEndpoints(numbers)
  webhookCounts:fetch(numbers)
  for i, webhook in ipairs(options.webhooks) do
    local source = sources[i]
    local endpoint = source and endpoints:get(source.webhook)
    if endpoint and endpoint.account == webhook.account then
      source.endpoint, source.account = endpoint, endpoint.accountNumber
      accounts[#accounts + 1] = source.account
    else
      sources[i] = nil
    end
  end
  accountCounts:fetch(accounts)
  meta:fetch({ 'completed' })
end

-- Reads the records of all deliveries at once.
local function readRecords(arguments)
  refs, eventFields, settled = {}, {}, {}
  local readRefs, readEvents = {}, {}
  for i = 2, #arguments, 4 do
    local source, suffix = sources[tonumber(arguments[i])], arguments[i + 1]
    if source then
      local dot = string.find(suffix, '.', 1, true)
      refs[i] = source.webhook .. '/' .. suffix
      eventFields[i] = source.account .. '/' .. (dot and string.sub(suffix, 1, dot - 1) or suffix)
      readRefs[#readRefs + 1], readEvents[#readEvents + 1] = refs[i], eventFields[i]
    end
  end
  deliveries:fetch(readRefs)
  progress:fetch(readEvents)
end

-- Changes an endpoint as the report of an attempt says.
local function changeEndpoint(webhook, endpoint, report)
  local change = applyReport({
    generation = endpoint.generation, status = endpoint.status, slowStart = tonumber(endpoint.slowStart),
    failingSince = tonumber(endpoint.failingSince),
  }, report, 1, perEndpoint)
  if not change then return end
  moveToLane(webhook, endpoint, change.lane)
  endpoint.slowStart = text(change.slowStart)
  endpoints:set(webhook, endpoint)
  if not change.health then return end
  endpoint.warnedAt = ''
  setFailingSince(webhook, endpoint, text(change.health.failingSince))
  setNoticeAt(webhook, endpoint, text(change.health.noticeAt))
  if change.health.noticeAt then notifyWorkers(change.health.noticeAt) end
end

-- Records the success of a delivery that was leased for the first time: its record is only the lease.
local function settleFirst(source, ref, key, success)
  local generation, lane, ms, sketch, record = string.match(success, SUCCESS)
  deliveries:setText(ref, 'd,' .. options.nonce .. ',' .. record)
  leases:remove(ref)
  source.ended, source.delivered, source.succeeded =
    source.ended + 1, source.delivered + 1, source.succeeded + 1
  source.ms, source.sketches[source.succeeded + source.failed], source.last = source.ms + ms, sketch, success
  local endpoint = source.endpoint
  -- Most endpoints are as they were.
  if lane ~= endpoint.lane or endpoint.slowStart ~= '' or endpoint.failingSince ~= '' then
    changeEndpoint(source.webhook, endpoint, { ok = true, generation = generation, lane = lane })
  end
  if progress:text(key) == '1' then
    progress:setText(key, '0,' .. nowText)
    completed:add(source.account .. '/' .. nowHex .. string.sub(key, #source.account + 1), 0)
    source.completed = source.completed + 1
  else
    closeEvent(source.account, endpoint.account, string.match(key, '/(.*)$'))
  end
end

-- Adds up what the settlements of each webhook have changed.
local function addSums()
  for _, source in pairs(sources) do
    local webhook, counts = source.webhook, getWebhookCounts(source.webhook)
    counts.d = counts.d + source.delivered
    if source.last then counts.last = string.match(source.last, '^%d+,[fs],[^\n]*\n(.*)$') or source.last end
    if #source.sketches > 0 then
      local sketches = table.concat(source.sketches)
      counts.recent = addRecent(webhook, counts.recent, source.succeeded, source.failed, source.ms, sketches)
    end
    if source.last then webhookCounts:set(webhook, counts) end
    if source.ended > 0 then
      changeInFlight(webhook, -source.ended)
      touched[webhook] = true
    end
    metaAdded.completed = metaAdded.completed + source.delivered
    if source.delivered > 0 then count(source.account, 'pending', -source.delivered) end
    if source.completed > 0 then
      count(source.account, 'completed', source.completed)
      startRetention(source.account, source.endpoint.account)
    end
  end
end

local function readSettlement(value)
  local generation, lane, ms, sketch, record = string.match(value, SUCCESS)
  if not generation then return decode(value) end
  local startedAt, attempt = string.match(record, '^(%d+),%d+\n(.*)$')
  return {
    outcome = 'delivered', startedAt = tonumber(startedAt), attempt = attempt, summary = attempt,
    ms = tonumber(ms), sketch = sketch,
    report = { ok = true, generation = generation, lane = lane },
  }
end

local function keepAttempt(d, attempt)
  d.attempts = d.attempts .. '\n' .. attempt
  local _, attempts = string.gsub(d.attempts, '\n', '')
  -- In parentheses, because find also returns the end of the match, which sub would take as its end.
  if attempts > MAX_ATTEMPTS then
    d.attempts = string.sub(d.attempts, (string.find(d.attempts, '\n', 2, true)))
  end
end

-- Records an attempt. `report`: what it says about the endpoint; nil for a failed test.
local function addAttempt(source, d, settlement, report)
  keepAttempt(d, settlement.attempt)
  source.last = settlement.summary
  if not report then return end
  source.sketches[#source.sketches + 1] = settlement.sketch
  if report.ok then
    source.succeeded, source.ms = source.succeeded + 1, source.ms + settlement.ms
  else
    source.failed = source.failed + 1
  end
end

-- Records any other result.
local function settleOther(source, ref, token, settlement)
  local webhook, endpoint, account = source.webhook, source.endpoint, source.account
  local d = getDelivery(account, ref)
  if not d or d.isBroken then return 'gone' end
  -- The same call again, because its reply was lost. It may have completed an event.
  if d.state ~= 'l' and d.token == options.nonce and not settled[ref] then
    completedIn[account] = endpoint.account
    return 'settled'
  end
  local result = classifySettlement(d.state, d.token, settlement.outcome, token)
  if result ~= 'settled' then return result end
  if d.state == 'l' then
    leases:remove(ref)
    source.ended = source.ended + 1
  elseif d.state == 'p' then
    queue:remove(queueMember(account, ref, d))
  end
  d.token, d.recovered = options.nonce, ''
  settled[ref] = true
  if settlement.startedAt then d.startedAt = text(settlement.startedAt) end
  local report = settlement.report
  if settlement.attempt then addAttempt(source, d, settlement, report) end
  if report then changeEndpoint(webhook, endpoint, report) end
  local state = OUTCOMES[settlement.outcome]
  if state then
    completeDelivery(endpoint, ref, d, state, settlement.reason or '')
  else
    d.step, d.dueAt, d.extraAt = text(settlement.step), text(settlement.dueAt), text(settlement.extraAt)
    d.postponed, d.crashes = text(settlement.postponed), text(settlement.crashes)
    enqueue(account, ref, d)
  end
  touched[webhook] = true
  return 'settled'
end

define('settle', PARTITION_KEYS, GOES_ON_WHEN_FULL, function(arguments)
  readSources()
  readRecords(arguments)
  local results = {}
  for i = 2, #arguments, 4 do
    local source, ref, token, settlement =
      sources[tonumber(arguments[i])], refs[i], arguments[i + 2], arguments[i + 3]
    local result = 'settled'
    if not source then
      result = 'gone'
    elseif deliveries:text(ref) == 'l,' .. token and string.find(settlement, '^%d') then
      settleFirst(source, ref, eventFields[i], settlement)
    else
      result = settleOther(source, ref, token, readSettlement(settlement))
    end
    results[#results + 1] = result
  end
  addSums()
  flush()
  return { table.concat(results, ' '), text(notifyAt), listExcess() }
end)
