-- Records the results of claims. Options: nonce, and webhooks: id and account of each.
--
-- ARGV, four for each settlement: the place of its webhook, the suffix of the delivery, the token of
-- the lease, and the result. For a success that reports on the endpoint the result is
-- `generation,lane,ms,sketch,startedAt,completedAt⏎attempt`, so that most deliveries need one match.
-- Otherwise it is JSON: outcome, reason, step, dueAt, postponed, crashes, extraAt, startedAt; attempt,
-- summary, ms, sketch; and report, on the endpoint: ok, generation, at, noticeAt, lane.
--
-- Replies the result of each settlement, the time that workers are notified of, and the accounts that
-- have too many completed events.

goOnWhenFull()
checkTypes({ QUEUE, READY.f, READY.s, LEASES, HEALTH, LOG, COMPLETED, RETENTION, FAILING }, { EVENTS, RATES })

local nonce = options.nonce
local OUTCOMES = { delivered = 'd', failed = 'f', withheld = 'w' }
local SUCCESS = '^(%d+),([fs]),(%d+),(%l%l%d+),(.*)$'

-- By its place: a webhook, and what its settlements add to its counts. Nil if the account has no such
-- webhook.
local sources = {}
do
  local ids, numbers = {}, {}
  for i, webhook in ipairs(options.webhooks) do ids[i] = webhook.id end
  for i, number in ipairs(call('HMGET', IDS, unpack(ids))) do
    if number then
      numbers[#numbers + 1] = number
      sources[i] = { webhook = number, ended = 0, delivered = 0, completed = 0, succeeded = 0, failed = 0, ms = 0, sketches = {} }
    end
  end
  fetchEndpoints(numbers)
  webhookCounts:fetch(numbers)
  local accounts = {}
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

-- For each settlement, the names of its delivery and its event. Their records are read at once.
local refs, events = {}, {}
do
  local readRefs, readEvents = {}, {}
  for i = 2, #ARGV, 4 do
    local source, suffix = sources[tonumber(ARGV[i])], ARGV[i + 1]
    if source then
      local dot = string.find(suffix, '.', 1, true)
      refs[i], events[i] = source.webhook .. '/' .. suffix, source.account .. '/' .. (dot and string.sub(suffix, 1, dot - 1) or suffix)
      readRefs[#readRefs + 1], readEvents[#readEvents + 1] = refs[i], events[i]
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
  deliveries:setText(ref, 'd,' .. nonce .. ',' .. record)
  leases:remove(ref)
  source.ended, source.delivered, source.succeeded = source.ended + 1, source.delivered + 1, source.succeeded + 1
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
    outcome = 'delivered', startedAt = tonumber(startedAt), attempt = attempt, summary = attempt, ms = tonumber(ms), sketch = sketch,
    report = { ok = true, generation = generation, lane = lane },
  }
end

local function keepAttempt(d, attempt)
  d.attempts = d.attempts .. '\n' .. attempt
  local _, attempts = string.gsub(d.attempts, '\n', '')
  -- In parentheses, because find also returns the end of the match, which sub would take as its end.
  if attempts > MAX_ATTEMPTS then d.attempts = string.sub(d.attempts, (string.find(d.attempts, '\n', 2, true))) end
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

-- Deliveries that this call has settled: another result for one is no repetition of the call.
local settled = {}

-- Records any other result.
local function settleOther(source, ref, token, settlement)
  local webhook, endpoint, account = source.webhook, source.endpoint, source.account
  local d = getDelivery(account, ref)
  if not d or d.isBroken then return 'gone' end
  -- The same call again, because its reply was lost. It may have completed an event.
  if d.state ~= 'l' and d.token == nonce and not settled[ref] then
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
  d.token, d.recovered = nonce, ''
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

local results = {}
for i = 2, #ARGV, 4 do
  local source, ref, token, settlement = sources[tonumber(ARGV[i])], refs[i], ARGV[i + 2], ARGV[i + 3]
  local result = 'settled'
  if not source then
    result = 'gone'
  elseif deliveries:text(ref) == 'l,' .. token and string.find(settlement, '^%d') then
    settleFirst(source, ref, events[i], settlement)
  else
    result = settleOther(source, ref, token, readSettlement(settlement))
  end
  results[#results + 1] = result
end
addSums()
flush()
return { table.concat(results, ' '), text(notifyAt), listExcess() }
