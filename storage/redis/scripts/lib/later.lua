-- Deliveries that are added to a stored event, by `resend` and `recover`. Options: account, id of the
-- webhook, pending and pendingPerAccount (the bounds).

-- Returns the bound that further deliveries of an account would exceed; nil if they fit.
local function findExceeded(account, added)
  if getAccountCounts(account).pending + added > options.pendingPerAccount then return 'pendingPerAccount' end
  if call('ZCARD', QUEUE) + call('ZCARD', LEASES) + added > options.pending then return 'pending' end
end

-- Adds a later delivery to a stored event. Returns its reference.
local function addDelivery(webhook, endpoint, event, label, serial, dueAt)
  local account, order = endpoint.accountNumber, nextOrder()
  local ref, d, p = toRef(webhook, event, tostring(serial)), newDelivery(order), getProgress(account, event)
  d.dueAt = text(dueAt)
  p.later = p.later .. webhook .. '.' .. serial .. ';'
  reopenEvent(account, event, p)
  enqueue(account, ref, d)
  log:add(table.concat({ account, order, event, label, webhook .. '.' .. serial }, '/'), 0)
  count(account, 'pending', 1)
  return ref
end

-- The serials of the later deliveries of an event to a webhook, the oldest first.
local function listSerials(account, event, webhook)
  local serials = {}
  for number, serial in string.gmatch(getProgress(account, event).later, '(%d+)%.(%d+)') do
    if number == webhook and serial ~= '0' then serials[#serials + 1] = serial end
  end
  return serials
end

-- Has a waiting delivery attempted at `at`, in addition to its schedule.
local function requestExtra(account, ref, at)
  local d = getDelivery(account, ref)
  queue:remove(queueMember(account, ref, d))
  d.extraAt = text(at)
  enqueue(account, ref, d)
end
