-- How functions are registered, and how each call begins.

-- Sets everything that belongs to one call. `names` are the names of its keys, `values` the keys.
local function begin(names, values, arguments)
  call = redis.call
  for i = 1, #names do keys[names[i]] = values[i] end
  options = decode(arguments[1])
  now, perEndpoint, perSecond = options.now, options.perEndpoint, options.perSecond
  if now then nowText, nowHex = text(now), hex(now) end
  for i = 1, #buffers do buffers[i]:clear() end
  metaAdded.completed, metaAdded.bytes = 0, 0
  touched, notifyAt, events, completedIn = {}, nil, {}, {}
end

-- Registers a function: `register` is Redis's, or that of the library as a script. `run` gets the
-- arguments: the options come first, items follow. Flags are those of Redis: `no-writes`; `allow-oom` for
-- a function that has to go on while Redis is full, which others are refused.
local function define(name, keyNames, flags, run)
  register({
    function_name = FUNCTION_PREFIX .. name,
    flags = flags,
    callback = function(values, arguments)
      begin(keyNames, values, arguments)
      return run(arguments)
    end,
  })
end

local READS, GOES_ON_WHEN_FULL, MAY_GROW = { 'no-writes' }, { 'allow-oom' }, {}

-- What claim.lua and retention.lua define for other files.
local claim
local deleteIfEmpty, rememberEvent, deleteWebhook, removeWebhook
local deleteDelivery, deleteRecord, deleteEvent, describeRemoval, cleanRemoved
