-- The model. A call defines its functions only if it needs them, because that takes longer than a decision.

local function saturating_sub(a, b)
  return max(a - b, 0)
end

-- The algorithms by the kind of state. They count a state that is as of `now`, see `advance`.
local ALGORITHMS = {}

-- Returns the parts of a unit that a state counts.
local function unit_of(quota)
  return quota.kind == BUCKET and quota.grain or 1
end

-- Returns the units left, less than 0 for a debt.
local function balance_of(quota, state, now)
  return quota.capacity - div_ceil(ALGORITHMS[quota.kind].used(quota, state, now), unit_of(quota))
end

-- Takes units of a refused request from a window or a log, but not into debt.
local function penalise(quota, state, now, cost)
  ALGORITHMS[quota.kind].take(quota, state, now, min(cost, max(balance_of(quota, state, now), 0)))
end

