-- The keys of the site, and its heads. Every script on content starts with lib/calls.lua and this file.
-- docs/redis.md describes the keys and the records.

local META, HEADS, COLUMNS, BODIES = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local NAMES, IDS, CHANGES, COMMITS = KEYS[5], KEYS[6], KEYS[7], KEYS[8]

-- The sequence of the last commit, and the nonce that names it.
local function lastCommit()
  local sequence, nonce = string.match(call('HGET', META, 'last') or '0 ', '^(%d+) (.*)$')
  return tonumber(sequence), nonce
end

local function versionOf(head) return head and string.match(head, '^%d+') or '0' end

local function isResident(head) return head and string.find(head, '^%d+,r') ~= nil end

-- Iterates over the names that a record holds.
local function namesOf(head) return string.gmatch(head or '', '\n([^\n]*)') end
