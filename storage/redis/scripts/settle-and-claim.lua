-- The common path after an event is stored: records deliveries that succeeded at their first
-- attempt, then leases due deliveries. Other cases are left to settle.lua and tidy.lua. This file
-- follows common-path.lua; settle-first-attempts.lua and claim-due.lua follow it in the same script.
--
-- ARGV from the ninth on: nonce; then how many deliveries, endpoints and accounts follow:
--   * for all deliveries, reference and new record in turn;
--   * for all deliveries, the record that each is expected to have;
--   * for each endpoint, its number, account, generation, how many of the deliveries are its own,
--     the lane that the last of them puts it in, its last attempt, how long all of them took with the sketch of that;
--   * for each account, its number, its name, how many of the deliveries and how many events are
--     its own; then for each of these events its id, how many of the deliveries are its own, and
--     how many it was stored with.
--
-- If a delivery or an endpoint is not as expected, nothing is changed and the reply is { places }:
-- the places of these deliveries, and of these endpoints after a `w`. Otherwise replies as
-- claim-due.lua does; the work for tidy.lua also names, as `A/account`, each account that has
-- too many completed events.

local nonce = ARGV[9]
local deliveryCount, endpointCount, accountCount = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local FIRST = 13
local ENDPOINT_FIELDS, ACCOUNT_FIELDS, EVENT_FIELDS = 7, 4, 3

-- The first write has to be one that a full Redis accepts.
call('HDEL', META, '-')
