-- Tollgate: decides the charges of requests in one atomic step.
--
-- This is tollgate-core's model, function by function and under the same names: bucket, fixed_window, sliding_window,
-- sliding_log, convert, subject. Whoever changes one changes the other; the differential test compares every field.
--
-- KEYS   one per subject. The charges name them by position.
-- ARGV   [1] the request, fixed-width and little-endian:
--          u8   is an instant given?    u64  that instant, in microseconds since the Unix epoch; else ignored
--        and then, as often as there are decisions:
--          u8   operation: 0 check, 1 charge, 2 refund, 3 reset
--          u64  of a refund: the instant the charges were taken at
--          u32  charges that follow, each:
--            u32  position in KEYS, from 1       u32  number of the limit's name
--            u8   kind of state: 0 bucket, 1 fixed window, 2 sliding window, 3 sliding log
--            u8   flags: 1 queues (leaky bucket), 2 counts refusals, 4 its window starts at the first request
--            u64  cost           u64  longest accepted wait, in microseconds
--            u64  capacity       u64  grain
--            u64  refill of a bucket, period of a window
--            u64  offset of a fixed window
-- Reply  one string, for each decision:
--          u64  its instant, then for each charge:
--            u64  units left     u64  microseconds until all are back
--            u8   verdict: 0 admit, 1 refuse, 2 never
--            u64  microseconds to wait, or until it fits
-- State  one string per subject, in MessagePack: its instant, then slot after slot; see `LAYOUT`.
--
-- Numbers. Lua counts in doubles, which are exact for integers up to 2^53. Quotas are built such that capacity * grain
-- is at most 2^50, what a bucket remembers at most 2^51 grains, what a window counts at most 2^51 units, and an instant
-- is at most 2^52. Two products may be larger, elapsed time * refill and cost * grain: those are only ever compared with
-- something small, for which a rounded one is as good. A number never becomes text here, except by '%.0f'.

local floor, max, min = math.floor, math.max, math.min

local MOST_GRAINS = 2 ^ 50
local MOST_USED = 2 * MOST_GRAINS
local MOST_COUNTED = 2 ^ 51

-- What a quota has for an offset when its window starts at the first request.
local FIRST_REQUEST = -1

-- The floor of the rounded quotient is the whole quotient: for integers with a + b < 2^53, a / b misses the next whole
-- number above it by at least 1 / b, which is more than half of the gap between the doubles there.
local function div(a, b)
  return floor(a / b)
end

local function div_ceil(a, b)
  return floor((a + b - 1) / b)
end

local function saturating_sub(a, b)
  return max(a - b, 0)
end

-- What one limit says of one cost.
local ADMIT, REFUSE, NEVER = 0, 1, 2

