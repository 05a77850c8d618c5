-- What every script on content starts with, after calls.lua: the keys of the site. docs/redis.md draws the keys and the texts.

local META, HEADS, COLUMNS, BODIES = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local NAMES, IDS, CHANGES, COMMITS = KEYS[5], KEYS[6], KEYS[7], KEYS[8]

-- The sequence of the last commit, and the nonce that names it.
local function lastCommit()
  local sequence, nonce = string.match(call('HGET', META, 'last') or '0 ', '^(%d+) (.*)$')
  return tonumber(sequence), nonce
end

local function versionOf(head) return head and string.match(head, '^%d+') or '0' end

local function isResident(head) return head and string.find(head, '^%d+,r') ~= nil end

-- Each name that a record holds, as a loop goes through them.
local function namesOf(head) return string.gmatch(head or '', '\n([^\n]*)') end
