-- The common path after an event is stored: records deliveries that were delivered at their first
-- attempt, then leases what is due. What is not common is left to settle.lua and tidy.lua. It follows
-- common-path.lua; exchange-settle.lua and exchange-claim.lua follow it in the same script.
--
-- ARGV from the ninth on: nonce; then how many deliveries, endpoints and accounts follow:
--   * of all deliveries, the reference and the new record in turn;
--   * of all deliveries, the record that each is expected to have;
--   * of each endpoint, its number, account, generation, how many of the deliveries are its own,
--     the lane that the last of them puts it in, and its last attempt;
--   * of each account, its number, its name, how many of the deliveries and how many events are its
--     own; then of each of these events its id, how many of the deliveries are its own, and how
--     many it was stored with.
--
-- Replies { places }, with nothing changed, where a delivery or an endpoint is not as expected: the
-- places of these deliveries, and of these endpoints after a `w`. Else as exchange-claim.lua does,
-- and what is left to tidy.lua has an `A/account` for each account that keeps too many events.

local nonce = ARGV[9]
local deliveryCount, endpointCount, accountCount = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local FIRST = 13
local ENDPOINT_FIELDS, ACCOUNT_FIELDS, EVENT_FIELDS = 6, 4, 3

-- The first write has to be one that a full Redis accepts.
call('HDEL', META, '-')
