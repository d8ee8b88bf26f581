-- The algorithms by the kind of state they keep.
local ALGORITHMS = {
  [BUCKET] = bucket,
  [FIXED_WINDOW] = fixed_window,
  [SLIDING_WINDOW] = sliding_window,
  [SLIDING_LOG] = sliding_log,
}

local function fresh(quota, now)
  return ALGORITHMS[quota.kind].fresh(quota, now)
end

local function judge(quota, state, from, now, cost, patience, queues)
  if cost == 0 then
    return ADMIT, 0
  end
  if cost > quota.capacity then
    return NEVER, 0
  end
  return ALGORITHMS[quota.kind].judge(quota, state, from, now, cost, patience, queues)
end

local function left(quota, state, from, now)
  return ALGORITHMS[quota.kind].left(quota, state, from, now)
end

local function advance(quota, state, from, now)
  ALGORITHMS[quota.kind].advance(quota, state, from, now)
end

local function take(quota, state, now, cost)
  ALGORITHMS[quota.kind].take(quota, state, now, cost)
end

local function penalise(quota, state, now, cost)
  if quota.kind == BUCKET then
    bucket.penalise(quota, state, now, cost)
  else
    local remaining = left(quota, state, now, now)
    take(quota, state, now, min(cost, remaining))
  end
end

local function give_back(quota, state, taken_at, cost)
  ALGORITHMS[quota.kind].give_back(quota, state, taken_at, cost)
end

