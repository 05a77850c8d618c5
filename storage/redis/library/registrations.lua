-- Registrations: webhooks are created, changed and removed, also by their health.

-- Stores a webhook, once for its id and once for its idempotency key. Options: account, id, shortId,
-- enabledLimit, accountLimit, status, types, generation, updatedAt, failingSince, warnedAt, noticeAt,
-- endpointPerSecond, config; and field (of the remembered key), digest, expiresAt if it has such a key.
define('create', PARTITION_KEYS, MAY_GROW, function()
  if options.field then
    local expiresAt, digest, value =
      string.match(call('HGET', keys.remembered, options.field) or '', '^(%d+)\n([^\n]*)\n(.*)$')
    if expiresAt and tonumber(expiresAt) > now then
      -- The same call again, because its reply was lost, has the same id.
      local isAgain = string.find(value, '"id":"' .. options.id .. '"', 1, true)
      if digest == options.digest then return { isAgain and 'created' or 'replayed', value } end
      return { 'key_reused' }
    end
  end
  local stored = call('HGET', keys.ids, options.id)
  if stored then return { 'created', call('HGET', keys.webhooks, stored) } end

  local account = readAccount(options.account)
  local all, enabled = countWebhooks(account)
  if all >= options.accountLimit then return { 'account_limit' } end
  if options.status == 'E' and enabled >= options.enabledLimit then return { 'enabled_limit' } end

  checkTypes({ 'accountList', 'failing', 'healthNotifications', 'expirations', 'webhooks', 'remembered' })
  local number = account and account.number or text(call('HINCRBY', keys.meta, 'accounts', 1))
  local webhook = text(call('HINCRBY', keys.meta, 'webhooks', 1))
  local noticeAt = text(options.noticeAt)
  local value = endpoints.write({
    accountNumber = number, account = options.account, status = options.status,
    generation = text(options.generation), updatedAt = text(options.updatedAt),
    failingSince = text(options.failingSince), warnedAt = text(options.warnedAt), noticeAt = noticeAt,
    lane = 's', slowStart = '', perSecond = text(options.endpointPerSecond), stored = '\n' .. options.config,
    restAt = 1,
  })
  local subscription = writeSubscription(webhook, options.status, options.shortId, options.types)
  local subscriptions = (account and account.subscriptions or '') .. subscription
  call('HSET', keys.accounts, options.account, number .. '\n' .. subscriptions)
  call('ZADD', keys.accountList, number, options.account)
  if options.failingSince then call('ZADD', keys.failing, 0, failingMember(webhook, options.failingSince)) end
  call('HSET', keys.ids, options.id, webhook)
  call('HSET', keys.webhooks, webhook, value)
  if noticeAt ~= '' then call('ZADD', keys.healthNotifications, noticeAt, webhook) end
  if options.field then
    local remembered = text(options.expiresAt) .. '\n' .. options.digest .. '\n' .. value
    remember(options.field, remembered, options.expiresAt)
  end
  return { 'created', value }
end)

-- Applies a change that the caller computed from the config it read. Replies `changed` if the stored
-- config is not that one any more.
--
-- Options: account, id, before (the config that was read), config, types, endpointPerSecond (if it has
-- a limit of its own), isMoved (true for a new url), enabledLimit; status if it changes.
define('update', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  local webhook, endpoint = findEndpoint(options.account, options.id)
  if not webhook then return { 'not_found' } end
  -- The same call again, because its reply was lost.
  local config = getConfig(endpoint)
  if config == options.config then return { 'updated', endpoints:text(webhook) } end
  if config ~= options.before then return { 'changed' } end

  local status = options.status or endpoint.status
  local isEnabled, isDisabled =
    status == 'E' and endpoint.status == 'D', status == 'D' and endpoint.status == 'E'
  if isEnabled then
    local _, enabled = countWebhooks(readAccount(options.account))
    if enabled >= options.enabledLimit then return { 'enabled_limit' } end
  end

  checkTypes({
    'queue', 'readyFast', 'readySlow', 'healthNotifications', 'failing', 'accounts', 'inFlight', 'rates',
  })
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
end)

-- Removes a webhook. Other functions no longer see it; its deliveries are freed page by page. Options:
-- account, id, nonce.
define('remove', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  if findReply() then return 1 end
  local webhook, endpoint = findEndpoint(options.account, options.id)
  if not webhook then return 0 end

  local from, to = below(webhook)
  local counts = getWebhookCounts(webhook)
  local pending = call('ZLEXCOUNT', keys.queue, from, to) + (inFlight:get(webhook) or 0)
  local isEmpty = pending + counts.d + counts.f + counts.w == 0
  local removal = describeRemoval(endpoint.accountNumber, options.account, endpoint)

  checkAllTypes()
  removeWebhook(options.account, webhook)
  rememberReply('')
  -- Without deliveries there is nothing to free. So creating and removing a webhook costs the same
  -- for any length of the log.
  if isEmpty then
    deleteIfEmpty(endpoint.accountNumber, options.account)
  else
    cleanRemoved(webhook, removal)
  end
  flush()
  return 1
end)

-- Records a health step, if the webhook is still failing since the same time and has the status that
-- the step was decided on. Options: account, id, failingSince, from, status, warnedAt, noticeAt, nonce.
define('settleHealthNotification', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  if findReply() then return 1 end
  local webhook, endpoint = findEndpoint(options.account, options.id)
  if not webhook or endpoint.status ~= options.from then return 0 end
  if endpoint.failingSince ~= text(options.failingSince) then return 0 end

  checkTypes({ 'healthNotifications', 'expirations' })
  if options.status ~= endpoint.status then
    stampUpdate(webhook, endpoint)
    endpoint.status = options.status
    changeSubscription(options.account, webhook, function(_, types) return options.status, types end)
  end
  endpoint.warnedAt = text(options.warnedAt)
  setNoticeAt(webhook, endpoint, text(options.noticeAt))
  if options.noticeAt then notifyWorkers(options.noticeAt) end
  flush()
  rememberReply('')
  return 1
end)

-- Leases the health notifications that are due, by postponing them. Options: leaseUntil, limit,
-- nonce. Replies with the records of the webhooks, and with when the next notification is due.
define('claimHealthNotifications', PARTITION_KEYS, GOES_ON_WHEN_FULL, function()
  checkTypes({ 'expirations' })
  local records, webhooks = {}, {}
  -- The same call again, because its reply was lost.
  for webhook in string.gmatch(findReply() or '', '%d+') do
    records[#records + 1] = endpoints:text(webhook) or nil
  end
  local limit = #records > 0 and 0 or options.limit
  local due = call('ZRANGEBYSCORE', keys.healthNotifications, '-inf', nowText, 'LIMIT', 0, limit)
  for _, webhook in ipairs(due) do
    local endpoint = endpoints:get(webhook)
    if endpoint then
      setNoticeAt(webhook, endpoint, text(options.leaseUntil))
      records[#records + 1] = endpoints:text(webhook)
      webhooks[#webhooks + 1] = webhook
    else
      call('ZREM', keys.healthNotifications, webhook)
    end
  end
  flush()
  if #webhooks > 0 then rememberReply(table.concat(webhooks, ' ')) end
  return { records, call('ZRANGE', keys.healthNotifications, 0, 0, 'WITHSCORES')[2] or '' }
end)
