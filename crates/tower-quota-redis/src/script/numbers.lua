-- tower-quota: decides the charges of requests, each request in one atomic step.
--
-- KEYS   the entries of the counted clients. All of them share a hash tag, hence a cluster slot.
-- ARGV   [1] the request, little-endian. It refers to keys and templates by position, from 1.
--          u8   1 if an instant is given    u56  that instant, in microseconds since the Unix epoch
--          u16  templates    u16  decisions
--        templates, each the common part of similar decisions:
--          u8   1 if the template is plain: a check of plain or refundable charges
--          u8   operation    u56  the instant of the charges, for a refund or a renewal
--          u16  clients of a decision
--          u16  charges that follow, client after client, each
--            u16  client of the decision, from 1
--            u16  flags        u56  cost          u56  longest accepted wait, in microseconds;
--                 for a refund: microseconds from the charge to the end of its turn
--            u32  number of the limit's name      u32  number of its strikes
--            u8   kind of state, with the flag of windows that start with their first request
--            u56  capacity     u56  grain         u56  refill or period    u56  offset of a fixed window
--            u8   bytes that follow: the stored slot from the name's number to the quota's numbers
--            A charge with the flag PENALTY is the penalty of the charge before. Its cost is the most debt.
--            A charge with the flag WINDOW is a calendar window of the charge before. Its cost is the window's start.
--        decisions, each
--          u16  template       then for each of its clients: u16  key
-- Reply  one string, for each decision:
--          if it converted stored states:
--            u8   CONVERTED    u32  a bit for each charge but penalties and windows
--          u8   TAKEN or REFUSED, for a plain decision: u56 its instant, then for each charge: u56 used grains, after
--                 the decision
--               DECIDED: u56 its instant, then for each charge but penalties and windows:
--                 u56  units left + 2^52, less for a debt     u56  microseconds until the limit is full
--                 u8   verdict        u56  microseconds to wait, or until the charge fits
--                 u56  units taken
--                 Then for each client:
--                 u16  bytes that follow: for a refused check, its entry with abridged logs, unless that is too long
--               UNREADABLE: the script cannot read the entry of a client, and did nothing
--               NOT_WRITTEN, u8 length, words: the server refused to write the changes, and nothing was done
--
-- `Entry` in tower-quota-core describes stored entries. buckets.lua decides most plain decisions. The model decides the
-- others. It follows the model of that crate function by function, and each file has the name of the file that it
-- follows. If you change one side, change the other. The differential test compares every field and stored byte.
--
-- Lua counts in doubles, which are exact for integers up to 2^53. The capacity * grain of a quota is at most 2^50, a
-- counter at most 2^51, and an instant at most 2^52. Elapsed time * refill and cost * grain may be larger. They are
-- only compared with small numbers, so rounding does no harm.

local max, min = math.max, math.min
local pack, unpack_from = struct.pack, struct.unpack
local byte, char, concat, rep, sub = string.byte, string.char, table.concat, string.rep, string.sub

-- `a % b` is `a - floor(a / b) * b`. It is exact for integers with a + b < 2^53: a / b misses the next integer above it
-- by at least 1 / b, which is more than half of the gap between the doubles there.
local function div(a, b)
  return (a - a % b) / b
end

local function div_ceil(a, b)
  return (a + -a % b) / b
end

local function has(flags, flag)
  return bit.band(flags, flag) ~= 0
end

local HEADER = '<BI7'

-- Reads a number of 7 bits a byte, the lowest first. Returns the number and the position after it.
local function varint(bytes, position)
  local value, unit = 0, 1
  for last = position, position + 7 do
    local digit = byte(bytes, last)
    value = value + digit % 128 * unit
    if digit < 128 then
      return value, last + 1
    end
    unit = unit * 128
  end
  error('a number without an end')
end

-- Reads a varint of 8 times a number without its last decimal zeros, plus how many zeros follow.
local function short(bytes, position)
  local value, behind = varint(bytes, position)
  return div(value, 8) * 10 ^ (value % 8), behind
end

local function to_varint(number)
  if number < 128 then
    return char(number)
  end
  return char(number % 128 + 128) .. to_varint(div(number, 128))
end

-- Returns a byte string after its length.
local function with_length(bytes)
  return to_varint(#bytes) .. bytes
end

