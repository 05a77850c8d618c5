-- Records the results of claims. Options: nonce, and webhooks: id and account of each.
--
-- ARGV, four for each settlement: the place of its webhook, the suffix of the delivery, the token of
-- the lease, and what to record. That is `generation,lane,ms,sketch,startedAt,completedAt⏎attempt` for a success that
-- reports on the endpoint, so that most deliveries need no more than one match. Otherwise JSON: outcome, reason, step, dueAt,
-- postponed, crashes, extraAt, startedAt; attempt, summary, ms, sketch; and report, on the endpoint:
-- ok, generation, at, noticeAt, lane.
--
-- Replies the result of each settlement, the time that workers are notified of, and the accounts that
-- have too many completed events.

goOnWhenFull()
checkTypes({})

local nonce = options.nonce
local OUTCOMES = { delivered = 'd', failed = 'f', withheld = 'w' }
local SUCCESS = '^(%d+),([fs]),(%d+),(%l%l%d+),(%d+),(%d+)\n(.*)$'

-- The number and the endpoint of each webhook; nil if the account has no such webhook.
local webhooks, numbers, found = {}, {}, {}
do
  local ids = {}
  for i, webhook in ipairs(options.webhooks) do ids[i] = webhook.id end
  for i, number in ipairs(call('HMGET', IDS, unpack(ids))) do
    webhooks[i] = number
    if number then numbers[#numbers + 1] = number end
  end
  fetchEndpoints(numbers)
  webhookCounts:fetch(numbers)
  for i, number in ipairs(webhooks) do
    local endpoint = number and endpoints:get(number)
    if endpoint and endpoint.account == options.webhooks[i].account then found[i] = endpoint end
  end
end

-- Reads the records that the settlements are about.
do
  local refs, events, accounts = {}, {}, {}
  for i = 2, #ARGV, 4 do
    local place, suffix = tonumber(ARGV[i]), ARGV[i + 1]
    local endpoint = found[place]
    if endpoint then
      refs[#refs + 1] = webhooks[place] .. '/' .. suffix
      events[#events + 1] = endpoint.accountNumber .. '/' .. string.match(suffix, '^[^.]*')
      accounts[#accounts + 1] = endpoint.accountNumber
    end
  end
  deliveries:fetch(refs)
  progress:fetch(events)
  accountCounts:fetch(accounts)
  meta:fetch({ 'completed' })
end

-- The attempts that this call adds to the hours of each webhook.
local added = {}

local function addAttempt(webhook, last, ok, ms, sketch)
  local counts = getWebhookCounts(webhook)
  counts.last = last
  webhookCounts:set(webhook, counts)
  local sum = added[webhook]
  if not sum then
    sum = { succeeded = 0, failed = 0, ms = 0, sketches = {} }
    added[webhook] = sum
  end
  if ok == nil then return end
  sum.sketches[#sum.sketches + 1] = sketch
  if ok then sum.succeeded, sum.ms = sum.succeeded + 1, sum.ms + ms else sum.failed = sum.failed + 1 end
end

local function addAttempts()
  for webhook, sum in pairs(added) do
    local counts = webhookCounts:get(webhook)
    if #sum.sketches > 0 then
      counts.recent = addRecent(webhook, counts.recent, sum.succeeded, sum.failed, sum.ms, table.concat(sum.sketches))
    end
  end
end

-- Changes an endpoint as the report of an attempt says.
local function changeEndpoint(webhook, endpoint, report)
  -- Most endpoints are as they were.
  if report.ok and report.lane == endpoint.lane and endpoint.slowStart == '' and endpoint.failingSince == '' then return end
  local change = applyReport({
    generation = endpoint.generation, status = endpoint.status, slowStart = tonumber(endpoint.slowStart),
    failingSince = tonumber(endpoint.failingSince),
  }, report, 1, perEndpoint)
  if not change then return end
  moveToLane(webhook, endpoint, change.lane)
  endpoint.slowStart = text(change.slowStart)
  endpoints:set(webhook, endpoint)
  if not change.health then return end
  endpoint.failingSince, endpoint.warnedAt = text(change.health.failingSince), ''
  setNoticeAt(webhook, endpoint, text(change.health.noticeAt))
  if change.health.noticeAt then notifyWorkers(change.health.noticeAt) end
end

local function endLease(webhook, ref)
  leases:remove(ref)
  changeInFlight(webhook, -1)
  touched[webhook] = true
end

-- Records the success of a delivery that was leased for the first time: its record is the lease alone.
local function settleFirst(webhook, endpoint, ref, success)
  local generation, lane, ms, sketch, startedAt, completedAt, attempt = string.match(success, SUCCESS)
  deliveries:setText(ref, 'd,' .. nonce .. ',' .. startedAt .. ',' .. completedAt .. '\n' .. attempt)
  endLease(webhook, ref)
  addAttempt(webhook, attempt, true, tonumber(ms), sketch)
  local counts = getWebhookCounts(webhook)
  counts.d = counts.d + 1
  changeEndpoint(webhook, endpoint, { ok = true, generation = generation, lane = lane })
  addToMeta('completed', 1)
  closeDelivery(endpoint.accountNumber, endpoint.account, string.match(ref, '/(.*)$'))
end

local function readSettlement(value)
  local generation, lane, ms, sketch, startedAt, _, attempt = string.match(value, SUCCESS)
  if not generation then return decode(value) end
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

-- Records any other result.
local function settleOther(webhook, endpoint, ref, token, settlement)
  local account = endpoint.accountNumber
  local d = getDelivery(account, ref)
  if not d or d.isBroken then return 'gone' end
  -- The same call again, because its reply was lost. It may have completed an event.
  if d.state ~= 'l' and d.token == nonce then
    completedIn[account] = endpoint.account
    return 'settled'
  end
  local result = classifySettlement(d.state, d.token, settlement.outcome, token)
  if result ~= 'settled' then return result end
  if d.state == 'l' then endLease(webhook, ref) end
  if d.state == 'p' then queue:remove(queueMember(account, ref, d)) end
  d.token, d.recovered = nonce, ''
  if settlement.startedAt then d.startedAt = text(settlement.startedAt) end
  local report = settlement.report
  if settlement.attempt then
    keepAttempt(d, settlement.attempt)
    addAttempt(webhook, settlement.summary, report and report.ok, settlement.ms, settlement.sketch)
  end
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

local function settle(place, suffix, token, settlement)
  local webhook, endpoint = webhooks[place], found[place]
  if not endpoint then return 'gone' end
  local ref = webhook .. '/' .. suffix
  if deliveries:text(ref) == 'l,' .. token and string.find(settlement, '^%d') then
    settleFirst(webhook, endpoint, ref, settlement)
    return 'settled'
  end
  return settleOther(webhook, endpoint, ref, token, readSettlement(settlement))
end

local results = {}
for i = 2, #ARGV, 4 do results[#results + 1] = settle(tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
addAttempts()
flush()
return { table.concat(results, ' '), text(notifyAt), listExcess() }
