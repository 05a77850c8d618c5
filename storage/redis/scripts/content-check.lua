-- Replies with the size of each key of the site, in the order of the keys.

local sizes = {}
for place, key in ipairs(KEYS) do
  local isSortedSet = key == CHANGES or key == COMMITS
  sizes[place] = call(isSortedSet and 'ZCARD' or 'HLEN', key)
end
return sizes
