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
-- back in the last microsecond before that and are not used; `marks`: where charges may be refunded, see lows.lua.
local bucket = {}
ALGORITHMS[BUCKET] = bucket

function bucket.fresh()
  return { full_at = 0, rest = 0 }
end

-- The state with so many grains used.
function bucket.set(quota, state, used, now)
  if used == 0 then
    state.full_at, state.rest, state.marks = 0, 0, nil
  else
    state.rest = -used % quota.refill
    state.full_at = now + (used + state.rest) / quota.refill
  end
  return state
end

function bucket.used(quota, state, now)
  return min(saturating_sub(saturating_sub(state.full_at, now) * quota.refill, state.rest), MOST_USED)
end

-- Returns what is used at `now`, just before a change. It is noted where charges may be refunded.
function bucket.note(quota, state, now)
  local used = bucket.used(quota, state, now)
  if state.marks then
    note_low(state.marks, used)
  end
  return used
end

-- Marks what is used after a charge, which can then be refunded exactly.
function bucket.watch(quota, state, now)
  if state.full_at > now then
    state.marks = state.marks or {}
    add_mark(state.marks, now, bucket.used(quota, state, now))
  end
end

-- The least used since an instant; nothing where it is not known.
function bucket.least(state, instant)
  local position = state.marks and mark_at(state.marks, instant)
  return position and state.marks[position + 1]
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

function bucket.balance(quota, state, now)
  return quota.capacity - div_ceil(bucket.used(quota, state, now), quota.grain)
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
  local used = bucket.note(quota, state, now)
  local least, unrefilled = bucket.least(state, taken_at), 0
  -- No more than a bucket counts was ever taken.
  local charged = min(cost * quota.grain, MOST_USED)
  if least or not is_prepared then
    unrefilled = saturating_sub(charged, saturating_sub(now, taken_at) * quota.refill)
  end
  local back = min(min(charged, max(least or 0, unrefilled)), used)
  if state.marks then
    refund_marks(state.marks, taken_at, back)
  end
  bucket.set(quota, state, used - back, now)
end

-- The state in stored bytes, and back.
function bucket.encode(quota, state)
  local bytes = quota.refill > 1 and pack('<I7', state.rest) or ''
  return state.marks and bytes .. pack_marks(state.marks) or bytes
end

function bucket.decode(quota, bytes, full_at, is_watched)
  local state = { full_at = full_at, rest = 0 }
  if quota.refill > 1 then
    state.rest, bytes = unpack_from('<I7', bytes), sub(bytes, 8)
  end
  if is_watched then
    state.marks, bytes = unpack_marks(bytes, 1, #bytes), ''
  end
  return state, bytes
end

