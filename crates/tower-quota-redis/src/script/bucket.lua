-- Way two: the model. Its functions are only made when a call needs them: making them takes longer than a decision.

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
-- `low` since `since`, and `low_before` in the span before that.
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
      state.since, state.low, state.low_before = now, used, low
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

-- The least used since an instant, as far as it is known.
function bucket.least(quota, state, instant)
  if not state.since then
    return 0
  elseif instant >= state.since then
    return state.low
  elseif instant + div_ceil(quota.capacity * quota.grain, quota.refill) >= state.since then
    return min(state.low, state.low_before)
  end
  return 0
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
  bucket.set(quota, state, min(bucket.note(quota, state, now) + cost * quota.grain, MOST_USED), now)
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

-- Gives back what was taken: what time has not refilled since, and all if no less was used in the meantime. No more
-- than a bucket counts was ever taken.
function bucket.refund(quota, state, now, taken_at, cost)
  local used, charged = bucket.note(quota, state, now), min(cost * quota.grain, MOST_USED)
  local unrefilled = saturating_sub(charged, saturating_sub(now, taken_at) * quota.refill)
  local back = min(min(charged, max(bucket.least(quota, state, taken_at), unrefilled)), used)
  if state.since then
    state.low, state.low_before = saturating_sub(state.low, back), saturating_sub(state.low_before, back)
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

