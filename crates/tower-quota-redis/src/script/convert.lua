-- A quota changes while counters live: what is left stays left, up to the new capacity; a debt stays a debt. Timing stays
-- too, as far as both quotas have the same kind of state.
local convert = {}

-- Products of two numbers below 2^26 are exact.
local FINEST = 2 ^ 26

-- Whether units are owed, how many whole ones are owed or left, and how many grains of what size of another.
function convert.standing(quota, state, now)
  local owed, amount, grain = false, 0, 1
  if quota.kind == BUCKET then
    local full = quota.capacity * quota.grain
    owed, amount, grain = state.used > full, math.abs(state.used - full), quota.grain
  elseif quota.kind == SLIDING_WINDOW then
    amount = sliding_window.owed(quota, state, now)
    owed = amount > 0
    if not owed then
      amount = left(quota, state, now, now)
    end
  else
    local counted = state.count or sliding_log.total(quota, state, now)
    owed, amount = counted > quota.capacity, math.abs(counted - quota.capacity)
  end
  return { owed = owed, whole = div(amount, grain), rest = amount % grain, grain = grain }
end

-- The part of a unit beyond the whole ones, in grains of another size, rounded down.
function convert.fraction(standing, grain)
  if standing.grain == grain then
    return standing.rest
  end
  local cut = div_ceil(standing.grain, FINEST)
  local parts = div_ceil(standing.grain, cut)
  local rest = div(standing.rest, cut)
  return rest * div(grain, parts) + div(rest * (grain % parts), parts)
end

function convert.grains_used(standing, quota)
  local grain, full = quota.grain, quota.capacity * quota.grain
  local fraction = convert.fraction(standing, grain)
  if standing.owed then
    -- A debt no bucket can hold is cut to the longest one that it can.
    if standing.whole >= div(full, grain) then
      return full + full
    end
    if standing.rest > 0 and standing.grain ~= grain then
      fraction = fraction + 1
    end
    return full + standing.whole * grain + fraction
  elseif standing.whole >= quota.capacity then
    return 0
  end
  return full - (standing.whole * grain + fraction)
end

function convert.units_used(standing, quota)
  if not standing.owed then
    return saturating_sub(quota.capacity, standing.whole)
  end
  local begun = 0
  if standing.rest > 0 then
    begun = 1
  end
  return quota.capacity + min(standing.whole, MOST_COUNTED) + begun
end

-- The same standing under another quota, as of `now`, of a state that is as of `from`. The old state is left alone.
function convert.state(state, old, new, from, now)
  local moved = {}
  for name, value in pairs(state) do
    moved[name] = value
  end
  advance(old, moved, from, now)
  local standing = convert.standing(old, moved, now)
  if new.kind == BUCKET then
    return { used = convert.grains_used(standing, new) }
  end
  local wanted = convert.units_used(standing, new)
  if new.kind == old.kind then
    if new.kind == FIXED_WINDOW then
      return { start = fixed_window.start(new, moved.start, now), count = min(wanted, MOST_COUNTED) }
    elseif new.kind == SLIDING_LOG then
      sliding_log.adjust(new, moved, now, wanted)
      return moved
    elseif new.period == old.period then
      sliding_window.adjust(new, moved, now, min(wanted, 2 * new.capacity))
      return moved
    end
  end
  local converted = fresh(new, now)
  take(new, converted, now, wanted)
  return converted
end

