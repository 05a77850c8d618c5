-- What becomes of an event that is appended: storage/queue/append.ts in Lua. `null` is nil here.
-- storage/queue/vectors.json proves the two equal.

-- The subscriptions that match a type: the type itself, `prefix.*` for each of its prefixes, and
-- `*`. A roster has them between bars.
local function listPatterns(type)
  local all = { '|' .. type .. '|', '|*|' }
  for place in string.gmatch(type, '()%.') do all[#all + 1] = '|' .. string.sub(type, 1, place) .. '*|' end
  return all
end

local function subscribes(types, patterns)
  for _, pattern in ipairs(patterns) do
    if string.find(types, pattern, 1, true) then return true end
  end
  return false
end

-- True if a webhook gets an event with these patterns. `target`: the id of the only webhook that
-- gets a test; nil for any other event.
local function receives(webhook, patterns, target)
  if webhook.status ~= 'E' then return false end
  if target then return webhook.id == target end
  return subscribes(webhook.types, patterns)
end

-- The name of a webhook's filter, which follows the types of its subscription; nil without one.
local function getFilterName(types) return string.match(types, '|([^|]+)$') end

-- Decides about an event whose id is known: a repetition has the same digest.
local function compareKnown(known, digest) return known == digest and 'duplicate' or 'conflict' end

-- True if an event is stored. One that nobody gets is stored only if a webhook may recover it.
local function isKept(isTest, receivers, webhooks, retentionMs)
  return receivers > 0 or (not isTest and webhooks > 0 and retentionMs > 0)
end
