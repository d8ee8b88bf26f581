-- A quota changes while counters live: what is left stays left, up to the new capacity; a debt stays a debt.
local convert = {}

-- The parts of a unit that a fraction is rounded to.
local PARTS = 2 ^ 20

-- A fraction `rest / grain` in parts of 2^20, rounded against the client.
function convert.parts_of(rest, grain, up)
  -- Large grains are cut first, so that the product below stays under 2^53.
  local cut = PARTS
  if grain < 2 ^ 32 then
    cut = 1
  end
  local parts = div(div(rest, cut) * PARTS, div_ceil(grain, cut))
  if up and rest > 0 then
    return parts + 1
  end
  return parts
end

-- Whether units are owed, how many whole ones are owed or left, and the parts of another.
function convert.standing(quota, state, now)
  local owed, amount, grain = false, 0, 1
  if quota.kind == BUCKET then
    local full = quota.capacity * quota.grain
    owed, amount, grain = state.used > full, math.abs(state.used - full), quota.grain
  elseif quota.kind == FIXED_WINDOW then
    owed, amount = state.count > quota.capacity, math.abs(state.count - quota.capacity)
  else
    amount = left(quota, state, now, now)
  end
  return owed, div(amount, grain), convert.parts_of(amount % grain, grain, owed)
end

function convert.grains_used(quota, owed, whole, parts)
  local grain, full = quota.grain, quota.capacity * quota.grain
  local fraction = div(grain, PARTS) * parts + div((grain % PARTS) * parts, PARTS)
  if owed then
    -- A debt no bucket can hold is cut to the longest one that it can.
    if whole >= div(full, grain) then
      return full + full
    end
    return full + whole * grain + fraction
  elseif whole >= quota.capacity then
    return 0
  end
  return full - (whole * grain + fraction)
end

function convert.units_used(quota, owed, whole, parts)
  if not owed then
    return saturating_sub(quota.capacity, whole)
  end
  local begun = 0
  if parts > 0 then
    begun = 1
  end
  return quota.capacity + min(whole, MOST_COUNTED) + begun
end

-- The same standing under another quota, as of `now`, of a state that is as of `from`. The old state is left alone.
function convert.state(state, old, new, from, now)
  local moved = {}
  for name, value in pairs(state) do
    moved[name] = value
  end
  advance(old, moved, from, now)
  local owed, whole, parts = convert.standing(old, moved, now)
  local converted = fresh(new, now)
  if new.kind == BUCKET then
    converted.used = convert.grains_used(new, owed, whole, parts)
  elseif new.kind == FIXED_WINDOW then
    converted.count = min(convert.units_used(new, owed, whole, parts), MOST_COUNTED)
  else
    take(new, converted, now, convert.units_used(new, owed, whole, parts))
  end
  return converted
end

