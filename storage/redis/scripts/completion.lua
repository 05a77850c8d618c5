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
