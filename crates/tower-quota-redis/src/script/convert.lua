-- A quota changes while counters live. Windows and logs of the same length keep what was used, anything else keeps what
-- is left. A debt stays a debt.
local convert = {}

-- Returns the units used of a new quota by a window or a log: of an old one so many grains were used, one or more to a
-- unit.
function convert.to_units(used, old_capacity, old_grain, new)
  local full = old_capacity * old_grain
  local amount = math.abs(used - full)
  local rest = amount % old_grain
  local units = (amount - rest) / old_grain
  if used > full then
    return new.capacity + min(units, MOST_COUNTED) + (rest > 0 and 1 or 0)
  end
  return saturating_sub(new.capacity, units)
end

-- A state under another quota, advanced to `now`. The old state is left alone.
function convert.state(state, old, new, now)
  local used, grain = 0, 1
  if old.kind == BUCKET then
    used, grain = bucket.used(old, state, now), old.grain
  else
    local moved = {}
    for name, value in pairs(state) do
      moved[name] = value
    end
    ALGORITHMS[old.kind].advance(old, moved, now)
    if has_windows_of(old, new) then
      return moved
    end
    used = ALGORITHMS[old.kind].used(old, moved, now)
  end
  if new.kind == BUCKET then
    return bucket.set(new, {}, converted_used(used, conversion(old.capacity, grain, new)), now)
  end
  local converted = ALGORITHMS[new.kind].fresh(new, now)
  -- A hold of the request that converts the state must have an instant of its own.
  take(new, converted, new.kind == HOLDS and max(now - 1, 0) or now, convert.to_units(used, old.capacity, grain, new))
  return converted
end

