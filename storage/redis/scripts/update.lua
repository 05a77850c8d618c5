-- Applies a change that the caller computed from the config it read. Replies `changed` if the stored
-- config is not that one any more.
--
-- Options: account, id, before (the config that was read), config, types, endpointPerSecond (if it has
-- a limit of its own), isMoved (true for a new url), enabledLimit; status if it changes.

local webhook, endpoint = findEndpoint(options.account, options.id)
if not webhook then return { 'not_found' } end
-- The same call again, because its reply was lost.
local config = getConfig(endpoint)
if config == options.config then return { 'updated', endpoints:text(webhook) } end
if config ~= options.before then return { 'changed' } end

local status = options.status or endpoint.status
local isEnabled, isDisabled = status == 'E' and endpoint.status == 'D', status == 'D' and endpoint.status == 'E'
if isEnabled then
  local _, enabled = countWebhooks(readAccount(options.account))
  if enabled >= options.enabledLimit then return { 'enabled_limit' } end
end

checkTypes({ QUEUE, READY.f, READY.s, HEALTH, FAILING }, { ACCOUNTS, IN_FLIGHT, RATES })
goOnWhenFull()
stampUpdate(webhook, endpoint)
endpoint.status = status
local before = endpoint.perSecond
endpoint.perSecond = text(options.endpointPerSecond)
if endpoint.perSecond ~= before then touched[webhook] = true end
endpoint.stored = string.match(endpoint.stored, '^[^\n]*\n') .. options.config
if isEnabled or options.isMoved then
  endpoint.generation, endpoint.slowStart = text(tonumber(endpoint.generation) + 1), ''
  moveToLane(webhook, endpoint, 's')
  touched[webhook] = true
end
if isEnabled or isDisabled or options.isMoved then
  endpoint.warnedAt = ''
  setFailingSince(webhook, endpoint, '')
  setNoticeAt(webhook, endpoint, '')
end
changeSubscription(options.account, webhook, function() return status, options.types end)
flush()
return { 'updated', endpoints:text(webhook), text(notifyAt) }
