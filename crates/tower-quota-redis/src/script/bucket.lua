-- The second path: the model. Its functions are defined only when a call needs them: that takes longer than a decision.

local function saturating_sub(a, b)
  return max(a - b, 0)
end

local function has(flags, flag)
  return bit.band(flags, flag) ~= 0
end

-- The algorithms by the kind of state they keep. Each has a file, which adds it.
local ALGORITHMS = {}

-- Token bucket, GCRA and leaky bucket. `full_at`: the instant from which nothing is used; `rest`: the grains that come
-- back in the last microsecond before that and are not used. Where charges may be refunded, the least grains used:
-- `low` since `since`, and `low_before` one more than that in the span before; 0 where there was none.
local bucket = {}
ALGORITHMS[BUCKET] = bucket

function bucket.fresh()
  return { full_at = 0, rest = 0 }
end

-- The state with so many grains used.
function bucket.set(quota, state, used, now)
  if used == 0 then
    state.full_at, state.rest, state.since = 0, 0, nil
  else
    state.rest = -used % quota.refill
    state.full_at = now + (used + state.rest) / quota.refill
  end
  return state
end

function bucket.used(quota, state, now)
  return min(saturating_sub(saturating_sub(state.full_at, now) * quota.refill, state.rest), MOST_USED)
end

-- Returns what is used at `now`, just before a change. It is noted where charges may be refunded; a span that is as
-- long as the bucket takes to fill ends.
function bucket.note(quota, state, now)
  local used = bucket.used(quota, state, now)
  if state.since then
    local low = min(state.low, used)
    if now - state.since < div_ceil(quota.capacity * quota.grain, quota.refill) then
      state.low = low
    else
      state.since, state.low, state.low_before = now, used, min(low + 1, MOST_USED)
    end
  end
  return used
end

-- Begins to note what is used, if that is not done already.
function bucket.watch(quota, state, now)
  if not state.since and state.full_at > now then
    state.since, state.low, state.low_before = now, bucket.used(quota, state, now), 0
  end
end

-- The least used since an instant; nothing where it is not known.
function bucket.least(quota, state, instant)
  if not state.since then
    return nil
  elseif instant >= state.since then
    return state.low
  elseif
    state.low_before > 0
    and instant + div_ceil(quota.capacity * quota.grain, quota.refill) >= state.since
  then
    return min(state.low, state.low_before - 1)
  end
  return nil
end

function bucket.judge(quota, state, now, cost, max_wait, queues)
  local used = bucket.used(quota, state, now)
  local after = used + cost * quota.grain
  local until_fits = div_ceil(saturating_sub(after, quota.capacity * quota.grain), quota.refill)
  local wait, retry
  if queues then
    -- There must be a place in the queue now, and the turn must come soon enough.
    wait = div_ceil(used, quota.refill)
    retry = max(until_fits, saturating_sub(wait, max_wait))
  else
    wait = until_fits
    retry = saturating_sub(until_fits, max_wait)
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
  local used = bucket.note(quota, state, now)
  local taken = min(cost * quota.grain, MOST_USED - used)
  bucket.set(quota, state, used + taken, now)
  return div(taken, quota.grain)
end

function bucket.penalise(quota, state, now, cost)
  local used = bucket.note(quota, state, now)
  local taken = min(used + cost * quota.grain, MOST_USED)
  bucket.set(quota, state, max(used, min(taken, quota.capacity * quota.grain)), now)
end

-- Microseconds until a debt is paid; 0 where there is none.
function bucket.until_paid(quota, state, now)
  return div_ceil(saturating_sub(bucket.used(quota, state, now), quota.capacity * quota.grain), quota.refill)
end

-- Takes one unit more, down to so many units of debt.
function bucket.strike(quota, state, now, most_debt)
  local used, deepest = bucket.note(quota, state, now), (quota.capacity + most_debt) * quota.grain
  bucket.set(quota, state, max(used, min(used + quota.grain, deepest)), now)
end

-- Gives back all of a charge, if no less was used in the meantime, and otherwise what time has not refilled since. How
-- fast it was refilled is not known where it was full since, or was counted by another quota.
function bucket.refund(quota, state, now, taken_at, cost, is_prepared)
  local used = bucket.used(quota, state, now)
  if state.since then
    state.low = min(state.low, used)
  end
  local least, unrefilled = bucket.least(quota, state, taken_at), 0
  -- No more than a bucket counts was ever taken.
  local charged = min(cost * quota.grain, MOST_USED)
  if least or not is_prepared then
    unrefilled = saturating_sub(charged, saturating_sub(now, taken_at) * quota.refill)
  end
  local back = min(min(charged, max(least or 0, unrefilled)), used)
  if state.since then
    state.low = saturating_sub(state.low, back)
    if state.low_before > 0 then
      state.low_before = max(saturating_sub(state.low_before, back), 1)
    end
  end
  bucket.set(quota, state, used - back, now)
end

-- The state in stored bytes, and back.
function bucket.encode(quota, state)
  local bytes = quota.refill > 1 and pack('<I7', state.rest) or ''
  return state.since and bytes .. pack('<I7I7I7', state.since, state.low, state.low_before) or bytes
end

function bucket.decode(quota, bytes, full_at, is_watched)
  local state = { full_at = full_at, rest = 0 }
  if quota.refill > 1 then
    state.rest, bytes = unpack_from('<I7', bytes), sub(bytes, 8)
  end
  if is_watched then
    state.since, state.low, state.low_before = unpack_from('<I7I7I7', bytes)
    bytes = sub(bytes, 22)
  end
  return state, bytes
end

