-- The algorithms by the kind of state they keep.
local BUCKET, FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG = 0, 1, 2, 3

local ALGORITHMS = {
  [BUCKET] = bucket,
  [FIXED_WINDOW] = fixed_window,
  [SLIDING_WINDOW] = sliding_window,
  [SLIDING_LOG] = sliding_log,
}

-- What a slot stores after the number of its limit and its kind of state: the numbers of the quota that counted it,
-- then those of the state. Two quotas with the same stored numbers read each other's state as it is.
local LAYOUT = {
  [BUCKET] = { quota = { 'capacity', 'grain', 'refill' }, state = { 'used' } },
  [FIXED_WINDOW] = { quota = { 'capacity', 'period', 'offset' }, state = { 'start', 'count' } },
  [SLIDING_WINDOW] = { quota = { 'capacity', 'period', 'grain' }, state = { 'start', 'before', 'count' } },
  [SLIDING_LOG] = { quota = { 'capacity', 'period' }, state = { 'base', 'entries' } },
}

local function counts_like(one, other)
  if one.kind ~= other.kind then
    return false
  end
  for _, name in ipairs(LAYOUT[one.kind].quota) do
    if one[name] ~= other[name] then
      return false
    end
  end
  return true
end

local function fresh(quota, now)
  return ALGORITHMS[quota.kind].fresh(quota, now)
end

local function judge(quota, state, from, now, cost, patience)
  if cost == 0 then
    return ADMIT, 0
  end
  if cost > quota.capacity then
    return NEVER, 0
  end
  return ALGORITHMS[quota.kind].judge(quota, state, from, now, cost, patience)
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

