-- What is asked. The decisions themselves are read as they are decided.
local request = ARGV[1]
local is_given, now, definition_count, template_count, subject_count, decision_count, id_width, position =
  unpack_from('<BI7HHHHB', request)

-- A test sends an instant of its own. Its clock and the server's do not run alike, so what is written under it lives for
-- a minute at least.
local shortest_lifetime = 60000
if is_given == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  shortest_lifetime = 1
end

local function read_quota(numbers)
  local name, kind, flags, capacity, grain, pace, offset = unpack_from('<I4BBI7I7I7I7', numbers)
  if flags == 1 then
    offset = FIRST_REQUEST
  end
  local quota = { limit = name, kind = kind, capacity = capacity, grain = grain, offset = offset }
  if kind == BUCKET then
    quota.refill = pace
  else
    quota.period = pace
  end
  return quota
end

-- Five bytes and 34: see the contract.
local definition_fields, definition_numbers, quotas = {}, {}, {}
for i = 1, definition_count do
  local field, numbers
  field, numbers, position = unpack_from('c5c34', request, position)
  local quota = read_quota(numbers)
  quota.id = unpack_from('<I5', field)
  definition_fields[i], definition_numbers[i], quotas[i] = field, numbers, quota
end

local templates = {}
for i = 1, template_count do
  local template = { charges = {} }
  local flags, count
  flags, template.operation, template.taken_at, template.subjects, count, position =
    unpack_from('<BBI7HH', request, position)
  template.is_plain = flags == 1
  for j = 1, count do
    local charge = {}
    charge.definition, charge.subject, charge.cost, charge.patience, charge.flags, position =
      unpack_from('<HHI7I7B', request, position)
    charge.quota = quotas[charge.definition]
    charge.limit = charge.quota.limit
    template.charges[j] = charge
  end
  templates[i] = template
end

local subject_ids = {}
for i = 1, subject_count do
  local width = id_width
  if width == 0 then
    width = string.byte(request, position)
    position = position + 1
  end
  subject_ids[i] = string.sub(request, position, position + width - 1)
  position = position + width
end

