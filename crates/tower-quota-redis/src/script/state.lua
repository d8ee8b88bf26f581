-- A quota by its numbers; `kind` has the flag of windows that start with their first request.
local function quota_of(kind, capacity, grain, pace, offset)
  local quota = { kind = kind % FROM_FIRST_REQUEST, capacity = capacity, grain = grain, offset = offset }
  if kind >= FROM_FIRST_REQUEST then
    quota.offset = FIRST_REQUEST
  end
  if quota.kind == BUCKET then
    quota.refill = pace
  else
    quota.period = pace
  end
  return quota
end

local function counts_like(one, other)
  return one.kind == other.kind
    and one.capacity == other.capacity
    and one.grain == other.grain
    and one.refill == other.refill
    and one.period == other.period
    and one.offset == other.offset
end

-- Returns whether both count the same windows in the same steps, of any number of units.
local function has_windows_of(one, other)
  return one.kind == other.kind
    and one.kind ~= BUCKET
    and (one.period == other.period or one.kind == HOLDS)
    and one.grain == other.grain
    and one.offset == other.offset
end

local function judge(quota, state, now, cost, max_wait, queues)
  if cost > quota.capacity then
    return NEVER, 0
  end
  return ALGORITHMS[quota.kind].judge(quota, state, now, cost, max_wait, queues)
end

-- Returns the units recorded: less than the cost where the state counts no more.
local function take(quota, state, now, cost)
  return ALGORITHMS[quota.kind].take(quota, state, now, cost)
end

-- Takes a charge such that it can be refunded exactly.
local function take_watched(quota, state, now, cost)
  local taken = take(quota, state, now, cost)
  if quota.kind == BUCKET then
    bucket.watch(quota, state, now)
  end
  return taken
end

local function penalise(quota, state, now, cost)
  if quota.kind == BUCKET then
    bucket.penalise(quota, state, now, cost)
  elseif quota.kind ~= HOLDS then
    -- A refused request has no hold that it could release.
    take(quota, state, now, min(cost, max(ALGORITHMS[quota.kind].balance(quota, state, now), 0)))
  end
end

local function renew(quota, state, now, taken_at)
  return ALGORITHMS[quota.kind].renew(quota, state, now, taken_at)
end

local function refund(quota, state, now, cost, taken_at)
  ALGORITHMS[quota.kind].refund(quota, state, now, taken_at, cost, false)
end

-- Refunds a charge that was taken so.
local function refund_prepared(quota, state, now, cost, taken_at)
  ALGORITHMS[quota.kind].refund(quota, state, now, taken_at, cost, true)
end

