-- Reads a stored quota, beginning with the kind of the state. Returns the quota and the position after the quota.
local function stored_quota(bytes, position)
  local kind = byte(bytes, position)
  local quota = { kind = kind == TOKEN_BUCKET + WATCHED and TOKEN_BUCKET or kind, offset = 0 }
  quota.capacity, position = short(bytes, position + 1)
  quota.grain, position = short(bytes, position)
  quota.pace, position = short(bytes, position)
  if kind == FIXED_WINDOW then
    quota.offset, position = short(bytes, position)
  end
  if quota.capacity * quota.grain * quota.pace == 0 then
    error('numbers that no quota has')
  end
  return quota, position
end

-- Returns the number of parts in a unit. A state counts parts.
local function unit_of(quota)
  return quota.kind == TOKEN_BUCKET and quota.grain or 1
end

-- Returns a * b / c rounded down, and the rest. The numbers are at most 2^50, and `a` is below `c`.
local function multiply_divide(a, b, c)
  if b == 0 then
    return 0, 0
  end
  -- Multiplies by a digit of `b` at a time, to a base that keeps all numbers below 2^53.
  local base = div(2 ^ 52, c)
  local quotient, rest = multiply_divide(a, div(b, base), c)
  rest = rest * base + a * (b % base)
  return quotient * base + div(rest, c), rest % c
end

-- Returns the used parts under another quota. The remaining units stay, up to the new capacity, or the debt. A fraction
-- counts against the client.
local function converted_used(used, old, new)
  local unit, new_unit = unit_of(old), unit_of(new)
  local full, new_full = old.capacity * unit, new.capacity * new_unit
  if full > 2 ^ 50 then
    error('numbers that no quota has')
  end
  local amount = math.abs(full - used)
  local units = div(amount, unit)
  local part, rest = multiply_divide(amount % unit, new_unit, unit)
  if used <= full then
    return max(new_full - units * new_unit - part, 0)
  end
  return min(new_full + units * new_unit + part + min(rest, 1), MOST_USED)
end

