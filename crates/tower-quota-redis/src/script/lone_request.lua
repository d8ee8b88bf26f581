-- What is asked by a call for one plain decision (see fast.lua) about one subject.
--
-- KEYS   [1] as in numbers.lua
-- ARGV   [1] the request, little-endian:
--          u8   is an instant given?    u56  that instant, as in numbers.lua
--          u8   charges    u8   bytes of the subject's id; 0: it is readable
--        charges, at most four, each a definition as in numbers.lua, then
--          u56  cost
--        the subject's id
-- Reply  one string: a decision by the short way, as in numbers.lua; or an empty one, and nothing was done, where it takes
--        the other script.
local request = ARGV[1]
local is_given, now, definition_count, id_width, position = unpack_from('<BI7BB', request)

-- Bytes of a charge.
local CHARGE = 46
local charges_start = position
local definition_fields, definition_numbers = {}, {}
for i = 1, definition_count do
  definition_fields[i], definition_numbers[i] = unpack_from('c5c34', request, position)
  position = position + CHARGE
end
local subject_count, subject_ids = 1, { string.sub(request, position) }

