-- Returns a state under another quota. The old state stays as it is.
local function convert(state, old, new, now)
  local used = converted_used(old:used(state, now), old, new)
  local fresh = new:fresh(now)
  if new.kind == TOKEN_BUCKET then
    return new:set(fresh, used, now)
  end
  -- A hold of the request that converts the state must have an instant of its own.
  new:take(fresh, new.kind == CONCURRENT and max(now - 1, 0) or now, used)
  return fresh
end

-- Returns whether a state of one quota counts for the other as it is.
local function shares_state(one, other)
  return one.kind == other.kind
    and one.grain == other.grain
    and one.offset == other.offset
    and (one.pace == other.pace or one.kind == CONCURRENT)
    and (one.capacity == other.capacity or one.kind ~= TOKEN_BUCKET)
end

