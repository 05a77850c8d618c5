-- The attempts of the last 24 hours of a webhook, per hour, newest first:
-- `<hour> <succeeded> <failed> <ms that those that succeeded took>;…`. storage/recent-attempts.ts
-- sums them up.

local RECENT_HOURS = 24

local function addRecent(recent, succeeded, failed, durationMs)
  local hour = math.floor(now / 3600000)
  local newest, ok, bad, ms, rest = string.match(recent, '^(%d+) (%d+) (%d+) (%d+);(.*)$')
  -- A clock that went back counts in the newest hour.
  if newest and tonumber(newest) >= hour then
    return newest .. ' ' .. text(ok + succeeded) .. ' ' .. text(bad + failed) .. ' ' .. text(ms + durationMs) .. ';' .. rest
  end
  local kept = {}
  for own, counts in string.gmatch(recent, '(%d+) ([^;]*);') do
    if tonumber(own) >= hour - RECENT_HOURS then kept[#kept + 1] = own .. ' ' .. counts .. ';' end
  end
  return text(hour) .. ' ' .. text(succeeded) .. ' ' .. text(failed) .. ' ' .. text(durationMs) .. ';' .. table.concat(kept)
end
