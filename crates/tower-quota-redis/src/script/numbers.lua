-- Decides the charges of requests for tower-quota, in an atomic step for every request.
--
-- KEYS   the entries of the counted clients, and the sets of their holds. All of them share a hash tag, hence a cluster
--        slot.
-- ARGV   [1] the request, little-endian. Keys and templates are positions, from 1.
--          u8   1 if an instant is given    u56  the instant, in microseconds since the Unix epoch
--          u16  templates    u16  decisions
--        templates, with the common part of similar decisions:
--          u8   1 if the template is plain, which means a check of plain or refundable charges
--          u8   operation    u56  the instant of the charges, for a refund or a renewal
--          u16  clients of a decision    u16  keys of a decision
--          u16  charges          u16  bytes of the charges that follow, client after client, with
--            u16  client of the decision, from 1
--            u16  flags        u56  cost          u56  longest accepted wait, in microseconds;
--                 for a refund, microseconds from the charge to the end of the turn
--            u32  number of the counter, of the limit's name or its holds
--            u32  the other of both numbers       u32  number of the limit's strikes
--            u8   kind of state, with the flag of windows that start with the first request
--            u56  capacity     u56  grain         u56  refill or period    u56  offset of a fixed window
--            u8   bytes that follow: the stored slot from the name's number to the quota's numbers
--            A charge with the flag PENALTY is the penalty of the charge before. The cost is the most debt.
--            A charge with the flag WINDOW is a calendar window of the charge before. The cost is the start.
--        decisions, each
--          u16  template       then for each of its clients: u16  key
--                              then for each charge with holds: u16  key of the set
-- Reply  one string, for each decision:
--          if it converted stored states:
--            u8   CONVERTED    u32  a bit for each charge but penalties and windows
--          u8   TAKEN or REFUSED, for a plain decision: u56 its instant, then for each charge: u56 count after the
--                 decision, which plain.lua describes
--               DECIDED, u56 the instant, then for every charge except penalties and windows
--                 u56  remaining units + 2^52, less for a debt     u56  microseconds until the limit is full
--                 u8   outcome        u56  microseconds to wait, or until the charge fits
--                 u56  units taken
--                 Then for every client
--                 u16  bytes that follow. A refused check returns the entry with abridged logs, unless too long
--               UNREADABLE, if the script cannot read the entry of a client. The decision changes no entry
--               NOT_WRITTEN, u8 length, message, if the server refused to write. The decision changes no entry
--
-- `Entry` in tower-quota-core describes stored entries. straight.lua and plain.lua make most plain decisions, and the
-- model makes all other decisions. The stored bytes do not depend on the path. The model has the same functions and
-- file names as the model of tower-quota-core. If you change either side, change the other side too. The differential
-- test compares every field and stored byte.
--
-- Lua counts in doubles, which are exact for integers up to 2^53. The capacity * grain of a quota is at most 2^50, a
-- counter at most 2^51, and an instant at most 2^52. Elapsed time * refill and cost * grain may be larger, but
-- are only compared with small numbers, so rounding does no harm.

local max, min = math.max, math.min
local pack, unpack_from = struct.pack, struct.unpack
local byte, char, concat, rep, sub = string.byte, string.char, table.concat, string.rep, string.sub

local HEADER = '<BI7'

