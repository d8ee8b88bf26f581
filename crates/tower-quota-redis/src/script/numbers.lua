-- tower-quota: decides the charges of requests, each request in one atomic step.
--
-- KEYS   the entries of the clients that the decisions count. All of them share a hash tag, hence a cluster slot.
-- ARGV   [1] the request, little-endian. Keys and templates are named by position, from 1:
--          u8   1 if an instant is given    u56  that instant, in microseconds since the Unix epoch
--          u16  templates    u16  decisions
--        templates: what decisions that look alike have in common, each
--          u8   1 if it is plain: a check of charges that are plain (`Charge::is_plain`) or would be if they
--               were not refundable
--          u8   operation    u56  of a refund or a renewal: the instant the charges were taken at
--          u16  clients of a decision
--          u16  charges that follow, client after client, each
--            u16  which of the decision's clients, from 1
--            u16  flags        u56  cost          u56  longest accepted wait, in microseconds;
--                 of a refund: microseconds from the charge to the end of its turn
--            u32  number of the limit's name      u32  number of its strikes
--            u8   kind of state, with the flag of windows that start with their first request
--            u56  capacity     u56  grain         u56  refill or period    u56  offset of a fixed window
--            u8   bytes that follow: the slot of this limit and quota from the name's number to the quota's numbers
--            A charge with the flag PENALTY is the penalty of the charge before: its cost is the most debt.
--            A charge with the flag LATER_WINDOW has the next window of the charge before: its cost is the instant at
--            which that window begins.
--        decisions, each
--          u16  template       then for each of its clients: u16  key
-- Reply  one string, for each decision:
--          u8   TAKEN or REFUSED, of a plain decision: u56 its instant, then for each charge: u56 grains used, after
--                 the taking or, of a refusal, before it
--               DECIDED: u56 its instant, then for each charge:
--                 u56  units left + 2^52, less for a debt     u56  microseconds until nothing is used
--                 u8   verdict        u56  microseconds to wait, or until it fits
--                 u56  units taken
--               A penalty has no answer of its own.
--               WITH_ENTRIES, of a check that is refused: as DECIDED, then for each client:
--                 u16  bytes that follow: its entry, with long logs abridged; none if that is too long
--               UNREADABLE: what is stored of a client makes no sense: nothing was done
--               NOT_WRITTEN, B length, words: the server refused to write what the decision changes, and nothing was done
--
-- An entry is stored as `Entry::encode` in tower-quota-core describes. buckets.lua decides plain decisions. All others
-- are decided by that crate's model, function by function: each file has the name of the file it follows. A change
-- of one side needs the same change of the other; the differential test compares every field and every stored byte.
--
-- Numbers. Lua counts in doubles, which are exact for integers up to 2^53. Quotas are built such that capacity * grain
-- is at most 2^50, what a bucket counts at most 2^51 grains, what a window counts at most 2^51 units, and an instant
-- is at most 2^52. Two products may be larger, elapsed time * refill and cost * grain: those are only ever compared
-- with something small, for which a rounded one is as good.

local max, min = math.max, math.min
local pack, unpack_from, sub = struct.pack, struct.unpack, string.sub

-- `a % b` is `a - floor(a / b) * b`. It is exact for integers with a + b < 2^53: a / b misses the next integer above it
-- by at least 1 / b, which is more than half of the gap between the doubles there.
local function div(a, b)
  return (a - a % b) / b
end

local function div_ceil(a, b)
  return (a + -a % b) / b
end

local HEADER = '<BI7'

-- Reads a number of 7 bits a byte, the lowest first. Returns it and the position behind it.
local function varint(bytes, position)
  local value, unit = 0, 1
  for last = position, position + 7 do
    local byte = string.byte(bytes, last)
    if not byte then
      break
    end
    value = value + byte % 128 * unit
    if byte < 128 then
      return value, last + 1
    end
    unit = unit * 128
  end
  error('a number without an end')
end

-- Reads a number that is stored without its last decimal zeros: a varint of 8 times the rest, plus how many these were.
local function short(bytes, position)
  local value, behind = varint(bytes, position)
  local zeros = value % 8
  value = (value - zeros) / 8
  for _ = 1, zeros do
    value = value * 10
  end
  return value, behind
end

-- Returns a byte string with its length as a varint in front.
local function with_length(bytes)
  local length, prefix = #bytes, ''
  while length > 127 do
    prefix = prefix .. string.char(length % 128 + 128)
    length = div(length, 128)
  end
  return prefix .. string.char(length) .. bytes
end

