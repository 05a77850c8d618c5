-- Recovers deliveries whose lease has expired, fails deliveries that cannot be read, and frees data
-- whose retention is over or that an account has too much of. Each call frees a bounded part.
--
-- Options: accounts that have too many completed events, as `A/account`, and unreadable: leased
-- references whose events cannot be read.
--
-- Replies with the deliveries that were failed, the name of the data set, and the accounts that still
-- have too many events.

goOnWhenFull()
checkTypes(
  { QUEUE, READY.f, READY.s, LEASES, LOG, EVENT_KEYS, COMPLETED, RETENTION, EXPIRATIONS, ACCOUNT_LIST },
  { WEBHOOKS, IN_FLIGHT, DELIVERIES, EVENTS, PROGRESS, ACCOUNT_COUNTS, WEBHOOK_COUNTS, REMEMBERED, REMOVALS, ACCOUNTS, RATES }
)

local RECOVERED_PER_CALL = 100

-- References whose records cannot be read. They end as failed, so that they do not hold up the rest;
-- the caller logs an error.
local failed = {}

local function endLease(ref, webhook)
  leases:remove(ref)
  changeInFlight(webhook, -1)
  touched[webhook] = true
end

-- Completes a leased delivery as failed.
local function fail(ref, endpoint, reason)
  failed[#failed + 1] = ref
  local d = deliveries:get(ref)
  if not d or d.isBroken then d = newDelivery('') end
  d.state = 'p'
  completeDelivery(endpoint, ref, d, 'f', reason)
end

-- Why the delivery of a reference cannot be attempted. Nil if its event can be read.
local function findDefect(endpoint, ref)
  local event = eventOf(ref)
  if not event then return 'record_unreadable' end
  if getEvent(endpoint.accountNumber, event) then return nil end
  return call('HEXISTS', EVENTS, endpoint.accountNumber .. '/' .. event) == 1 and 'payload_unreadable' or 'payload_missing'
end

local function recover(ref)
  local webhook = webhookOf(ref)
  local endpoint, d = webhook and endpoints:get(webhook), deliveries:get(ref)
  if not endpoint or not eventOf(ref) then
    leases:remove(ref)
    return
  end
  endLease(ref, webhook)
  if d and not d.isBroken and not isOpen(d) then return end
  local defect = d and d.isBroken and 'record_unreadable' or findDefect(endpoint, ref)
  d = not defect and getDelivery(endpoint.accountNumber, ref)
  if not d then
    fail(ref, endpoint, defect or 'record_unreadable')
  elseif d.state == 'l' then
    d.crashes, d.recovered, d.token = text((tonumber(d.crashes) or 0) + 1), '1', ''
    enqueue(endpoint.accountNumber, ref, d)
  end
end

for _, ref in ipairs(options.unreadable or {}) do
  local webhook = webhookOf(ref)
  local endpoint = webhook and endpoints:get(webhook)
  if endpoint and call('ZSCORE', LEASES, ref) then
    endLease(ref, webhook)
    fail(ref, endpoint, findDefect(endpoint, ref) or 'payload_unreadable')
  end
end
local expired = call('ZRANGEBYSCORE', LEASES, '-inf', text(now), 'LIMIT', 0, RECOVERED_PER_CALL)
deliveries:fetch(expired)
for _, ref in ipairs(expired) do recover(ref) end

local left = FREED_PER_CALL
for _, member in ipairs(call('ZRANGEBYSCORE', RETENTION, '-inf', text(now), 'LIMIT', 0, 20)) do
  if left > 0 then left = left - freeExpired(member, left) end
end
forgetExpired(FREED_PER_CALL)
local removed = call('HRANDFIELD', REMOVALS, 1, 'WITHVALUES')
if removed[1] then cleanRemoved(removed[1], removed[2]) end
for _, name in ipairs(options.accounts or {}) do
  local account, of = string.match(name, '^(%d+)/(.*)$')
  if account then completedIn[account] = of end
end
freeExcess()
local excess = listExcess()
flush()
return { failed, meta:text('dataSet') or '', excess }
