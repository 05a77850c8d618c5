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
      value = string.sub(value, 1, at + 1) .. ((tonumber(before) or 0) + count) .. string.sub(value, at + 2 + #before)
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
  local past = (call('HGET', WEBHOOK_COUNTS, webhook .. '/h') or '') .. ended
  local _, count = string.gsub(past, ';', '')
  for _ = MAX_HOURS, count do past = string.sub(past, (string.find(past, ';', 1, true)) + 1) end
  call('HSET', WEBHOOK_COUNTS, webhook .. '/h', past)
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
