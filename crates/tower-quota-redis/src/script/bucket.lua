-- Token bucket, GCRA and leaky bucket. `used`: the grains taken and not yet back.
local bucket = {}

function bucket.fresh()
  return { used = 0 }
end

function bucket.refilled(quota, used, elapsed)
  return saturating_sub(used, elapsed * quota.refill)
end

function bucket.judge(quota, state, from, now, cost, patience, queues)
  local used = bucket.refilled(quota, state.used, now - from)
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

function bucket.left(quota, state, from, now)
  local used = bucket.refilled(quota, state.used, now - from)
  local remaining = div(saturating_sub(quota.capacity * quota.grain, used), quota.grain)
  return remaining, div_ceil(used, quota.refill)
end

function bucket.advance(quota, state, from, now)
  state.used = bucket.refilled(quota, state.used, now - from)
end

function bucket.take(quota, state, _, cost)
  state.used = min(state.used + cost * quota.grain, MOST_USED)
end

function bucket.penalise(quota, state, _, cost)
  local taken = min(state.used + cost * quota.grain, MOST_USED)
  state.used = max(state.used, min(taken, quota.capacity * quota.grain))
end

-- Microseconds until a debt is paid; 0 where there is none.
function bucket.until_paid(quota, state, from, now)
  local used = bucket.refilled(quota, state.used, now - from)
  return div_ceil(saturating_sub(used, quota.capacity * quota.grain), quota.refill)
end

-- Takes one unit more, down to so many units of debt.
function bucket.strike(quota, state, _, most_debt)
  local deepest = (quota.capacity + most_debt) * quota.grain
  state.used = max(state.used, min(state.used + quota.grain, deepest))
end

function bucket.give_back(quota, state, _, cost)
  state.used = saturating_sub(state.used, cost * quota.grain)
end

