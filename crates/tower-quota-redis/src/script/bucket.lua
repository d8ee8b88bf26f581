-- Way two: the model. Its functions are only made when a call needs them: making them takes longer than a decision.

local function saturating_sub(a, b)
  return max(a - b, 0)
end

local function has(flags, flag)
  return bit.band(flags, flag) ~= 0
end

-- Token bucket, GCRA and leaky bucket. `full_at`: the instant from which nothing is used; `rest`: the grains that come back
-- in the last microsecond before that and are not used.
local bucket = {}

function bucket.fresh()
  return { full_at = 0, rest = 0 }
end

-- The state with so many grains used.
function bucket.set(quota, state, used, now)
  if used == 0 then
    state.full_at, state.rest = 0, 0
  else
    state.rest = -used % quota.refill
    state.full_at = now + (used + state.rest) / quota.refill
  end
  return state
end

function bucket.used(quota, state, now)
  return min(saturating_sub(saturating_sub(state.full_at, now) * quota.refill, state.rest), MOST_USED)
end

function bucket.judge(quota, state, now, cost, patience, queues)
  local used = bucket.used(quota, state, now)
  local after = used + cost * quota.grain
  local until_fits = div_ceil(saturating_sub(after, quota.capacity * quota.grain), quota.refill)
  local wait, retry
  if queues then
    -- There must be a place in the queue now, and the turn must come soon enough.
    wait = div_ceil(used, quota.refill)
    retry = max(until_fits, saturating_sub(wait, patience))
  else
    wait = until_fits
    retry = saturating_sub(until_fits, patience)
  end
  if retry == 0 then
    return ADMIT, wait
  end
  return REFUSE, retry
end

function bucket.remaining(quota, state, now)
  return div(saturating_sub(quota.capacity * quota.grain, bucket.used(quota, state, now)), quota.grain)
end

function bucket.full_at(_, state)
  return state.full_at
end

function bucket.advance()
end

function bucket.take(quota, state, now, cost)
  bucket.set(quota, state, min(bucket.used(quota, state, now) + cost * quota.grain, MOST_USED), now)
end

function bucket.penalise(quota, state, now, cost)
  local used = bucket.used(quota, state, now)
  local taken = min(used + cost * quota.grain, MOST_USED)
  bucket.set(quota, state, max(used, min(taken, quota.capacity * quota.grain)), now)
end

-- Microseconds until a debt is paid; 0 where there is none.
function bucket.until_paid(quota, state, now)
  return div_ceil(saturating_sub(bucket.used(quota, state, now), quota.capacity * quota.grain), quota.refill)
end

-- Takes one unit more, down to so many units of debt.
function bucket.strike(quota, state, now, most_debt)
  local used, deepest = bucket.used(quota, state, now), (quota.capacity + most_debt) * quota.grain
  bucket.set(quota, state, max(used, min(used + quota.grain, deepest)), now)
end

-- Gives back what was taken, less what time has refilled since. No more than a bucket counts was ever taken.
function bucket.refund(quota, state, now, taken_at, cost)
  local back = saturating_sub(min(cost * quota.grain, MOST_USED), saturating_sub(now, taken_at) * quota.refill)
  bucket.set(quota, state, saturating_sub(bucket.used(quota, state, now), back), now)
end

-- The state in stored bytes, and back.
function bucket.encode(quota, state)
  return quota.refill > 1 and pack('<I7', state.rest) or ''
end

function bucket.decode(quota, bytes, full_at)
  local rest = 0
  if quota.refill > 1 then
    rest, bytes = unpack_from('<I7', bytes), sub(bytes, 8)
  end
  return { full_at = full_at, rest = rest }, bytes
end

