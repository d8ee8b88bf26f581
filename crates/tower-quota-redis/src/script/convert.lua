-- Returns a * b / c rounded down, and the rest. All are at most 2^50, and `a` is below `c`.
local function multiply_divide(a, b, c)
  if b == 0 then
    return 0, 0
  end
  -- One digit of `b` at a time, to a base that keeps all numbers below 2^53.
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
  elseif units >= div(MOST_USED - new_full, new_unit) then
    return MOST_USED
  end
  return new_full + units * new_unit + part + min(rest, 1)
end

-- Returns a state under another quota. The old state stays as it is.
local function convert(state, old, new, now)
  local used = converted_used(old:used(state, now), old, new)
  local fresh = new:fresh(now)
  if new.kind == BUCKET then
    return new:set(fresh, used, now)
  end
  -- A hold of the request that converts the state must have an instant of its own.
  new:take(fresh, new.kind == HOLDS and max(now - 1, 0) or now, used)
  return fresh
end

-- Returns whether a state of one quota counts for the other as it is.
local function shares_state(one, other)
  return one.kind == other.kind
    and one.grain == other.grain
    and one.offset == other.offset
    and (one.pace == other.pace or one.kind == HOLDS)
    and (one.capacity == other.capacity or one.kind ~= BUCKET)
end

