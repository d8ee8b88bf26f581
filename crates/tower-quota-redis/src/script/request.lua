-- What is asked. The decisions themselves are read as they are decided.
local request = ARGV[1]
local is_given, now, definition_count, template_count, subject_count, decision_count, id_width, position =
  unpack_from('<BI7HHHHB', request)

-- Bytes of a definition, and of a charge. What is in them is only read where it is needed.
local DEFINITION, CHARGE = 39, 19
local definitions_start = position
local definition_fields, definition_numbers = {}, {}
for i = 1, definition_count do
  definition_fields[i], definition_numbers[i], position = unpack_from('c5c34', request, position)
end

local templates = {}
for i = 1, template_count do
  local flags, operation, taken_at, subjects, charges, start = unpack_from('<BBI7HH', request, position)
  templates[i] = {
    is_plain = flags == 1,
    operation = operation,
    taken_at = taken_at,
    subjects = subjects,
    charge_count = charges,
    start = start,
    -- Made when they are needed: the parts for the short way, the charges for the long one.
    parts = nil,
    charges = nil,
  }
  position = start + charges * CHARGE
end

local subject_ids
if id_width > 0 then
  subject_ids = { unpack_from(string.rep('c' .. id_width, subject_count), request, position) }
  -- The last result is where the reading ended.
  position, subject_ids[subject_count + 1] = subject_ids[subject_count + 1], nil
else
  subject_ids = {}
  for i = 1, subject_count do
    local width = string.byte(request, position)
    subject_ids[i] = string.sub(request, position + 1, position + width)
    position = position + 1 + width
  end
end

-- For each decision its template, then its subjects.
local decisions = { unpack_from('<' .. string.rep('H', (#request - position + 1) / 2), request, position) }

