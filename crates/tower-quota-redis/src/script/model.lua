-- The long way, for everything that fast.lua leaves. Its functions are only made when a call needs them: making them
-- takes longer than a decision does.

local MOST_GRAINS = 2 ^ 50
local MOST_USED = 2 * MOST_GRAINS
local MOST_COUNTED = 2 ^ 51

local function saturating_sub(a, b)
  return max(a - b, 0)
end

-- Kinds of state.
local BUCKET, FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG = 0, 1, 2, 3

-- What a quota has for an offset when its window starts at the first request.
local FIRST_REQUEST = -1

-- Flags of a charge.
local QUEUES, COUNTS_REFUSALS, SHADOW, AT_MOST, PENALTY = 1, 2, 4, 8, 16

local function has(flags, flag)
  return bit.band(flags, flag) ~= 0
end

-- What one limit says of one cost.
local ADMIT, REFUSE, NEVER = 0, 1, 2

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

-- The request's definitions, and its templates' charges, in full.
local quotas = {}
for i, numbers in ipairs(definition_numbers) do
  quotas[i] = read_quota(numbers)
  quotas[i].id = unpack_from('<I5', definition_fields[i])
end

local function charges_of(template)
  if not template.charges then
    local charges = {}
    for i = 1, template.charge_count do
      local definition, subject, cost, patience, flags =
        unpack_from('<HHI7I7B', request, template.start + (i - 1) * CHARGE)
      if is_confused[definition] then
        error('two quotas with one number')
      end
      local quota = quotas[definition]
      if has(flags, PENALTY) then
        charges[#charges].strikes = { quota = quota, limit = quota.limit, most_debt = cost }
      else
        charges[#charges + 1] =
          { quota = quota, limit = quota.limit, subject = subject, cost = cost, patience = patience, flags = flags }
      end
    end
    template.charges = charges
  end
  return template.charges
end

