-- Returns a state under another quota. The old state stays as it is.
local function convert(state, old, new, now)
  local used = converted_used(old:used(state, now), old, new)
  local fresh = new:fresh(now)
  if new.kind == TOKEN_BUCKET then
    return new:set(fresh, used, now)
  end
  new:take_evenly(fresh, now, used)
  return fresh
end

-- Returns whether two quotas can share a state without conversion.
local function shares_state(one, other)
  return one.kind == other.kind
    and one.grain == other.grain
    and one.offset == other.offset
    and (one.pace == other.pace or one.kind == CONCURRENT)
    and (one.capacity == other.capacity or one.kind ~= TOKEN_BUCKET)
end

