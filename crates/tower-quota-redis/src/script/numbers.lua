-- tower-quota: decides the charges of requests, each request in one atomic step.
--
-- This is tower-quota-core's model, function by function and under the same names: bucket, fixed_window, sliding_window,
-- sliding_log, convert, subject, decide. Whoever changes one changes the other; the differential test compares every
-- field. What nearly every request asks for, a check of plain buckets, has a shorter way in fast.lua, and alone a script
-- of its own, of which lone_request.lua tells.
--
-- KEYS   [1] `BASE:quotas`: the generation, and the quotas that states were counted by. The other keys are named after
--        it, see shelves.lua; all of them share its hash tag.
-- ARGV   [1] the request, little-endian. A subject, a definition and a template are each named by position, from 1:
--          u8   is an instant given?    u56  that instant, in microseconds since the Unix epoch; else ignored
--          u16  definitions, u16 templates, u16 subjects, u16 decisions that follow
--          u8   bytes of a subject's id; 0: each has a length byte of its own in front
--        definitions: what a limit counts by, each
--          5 bytes  its number: a hash, with the kind of state in the two lowest bits
--          u32  number of the limit's name
--          u8   kind of state: 0 bucket, 1 fixed window, 2 sliding window, 3 sliding log
--          u8   flags: 1 its window starts at the first request
--          u56  capacity       u56  grain
--          u56  refill of a bucket, period of a window
--          u56  offset of a fixed window
--        templates: what decisions that look alike have in common, each
--          u8   flags: 1 plain, see fast.lua
--          u8   operation: 0 check, 1 charge, 2 refund, 3 reset, 4 refuse
--          u56  of a refund: the instant the charges were taken at
--          u16  subjects of a decision
--          u16  charges that follow, subject after subject:
--            u16  definition   u16  which of the decision's subjects, from 1
--            u56  cost         u56  longest accepted wait, in microseconds
--            u8   flags: 1 queues (leaky bucket), 2 counts refusals, 4 is a shadow, 8 takes at most its cost,
--                  16 is the penalty of the charge before it: its cost is the most debt
--        subjects: their ids
--        decisions, each
--          u16  template       then for each of its subjects: u16  subject
-- Reply  one string, for each decision:
--          u8   0 taken, 1 refused, both by the short way: then for each subject its state as in subject.lua, after the
--                 taking or, of a refusal, before it
--               2 decided by the long way: u56 its instant, then for each charge:
--                 u56  units left     u56  microseconds until all are back
--                 u8   verdict: 0 admit, 1 refuse, 2 never
--                 u56  microseconds to wait, or until it fits
--                 u56  units taken
--               A penalty has no answer of its own.
--               3 what is stored of a subject, or of a quota, makes no sense: nothing was done
--
-- Numbers. Lua counts in doubles, which are exact for integers up to 2^53. Quotas are built such that capacity * grain
-- is at most 2^50, what a bucket remembers at most 2^51 grains, what a window counts at most 2^51 units, and an instant
-- is at most 2^52. Two products may be larger, elapsed time * refill and cost * grain: those are only ever compared with
-- something small, for which a rounded one is as good. A number becomes text by '%.0f', or by '%d' where it is below 2^31.

local floor, max, min = math.floor, math.max, math.min
local pack, unpack_from = struct.pack, struct.unpack

-- The floor of the rounded quotient is the whole quotient: for integers with a + b < 2^53, a / b misses the next whole
-- number above it by at least 1 / b, which is more than half of the gap between the doubles there.
local function div(a, b)
  return floor(a / b)
end

local function div_ceil(a, b)
  return floor((a + b - 1) / b)
end

