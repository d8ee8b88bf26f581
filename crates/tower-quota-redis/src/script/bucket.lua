-- Token bucket, GCRA and leaky bucket. `full_at` is the instant at which the bucket is full. `rest` is the surplus of the
-- last refill before it, in grains. lows.lua describes the `marks`.
local bucket = {}
ALGORITHMS[BUCKET] = bucket

-- Returns the position of the last mark of an instant or earlier.
local function mark_at(marks, instant)
  for position = #marks - 1, 1, -2 do
    if marks[position] <= instant then
      return position
    end
  end
end

-- Returns the marks as if the charge at the position `first` had never been made.
local function refunded_marks(marks, first, grains)
  local kept, least = {}, max(marks[first + 1] - grains, 0)
  for position = 1, #marks, 2 do
    local low = max(marks[position + 1] - grains, 0)
    if position < first then
      low = min(marks[position + 1], least)
    end
    if kept[#kept] ~= low then
      kept[#kept + 1], kept[#kept + 2] = marks[position], low
    end
  end
  return kept
end

function bucket.fresh()
  return { full_at = 0, rest = 0 }
end

function bucket.advance(_, state)
  return state
end

-- Returns the state with so many used grains.
function bucket.set(quota, state, used, now)
  if used == 0 then
    state.full_at, state.rest, state.marks = 0, 0, nil
  else
    state.rest = -used % quota.pace
    state.full_at = now + (used + state.rest) / quota.pace
  end
  return state
end

function bucket.used(quota, state, now)
  return min(saturating_sub(saturating_sub(state.full_at, now) * quota.pace, state.rest), MOST_USED)
end

-- Returns the used grains just before a change.
function bucket.note(quota, state, now)
  local used = bucket.used(quota, state, now)
  if state.marks then
    note_low(state.marks, used)
  end
  return used
end

function bucket.until_fits(quota, state, now, cost)
  local missing = bucket.used(quota, state, now) + (cost - quota.capacity) * quota.grain
  return div_ceil(max(missing, 0), quota.pace)
end

function bucket.full_at(_, state)
  return state.full_at
end

function bucket.take(quota, state, now, cost, is_refundable, most)
  local used = bucket.note(quota, state, now)
  local taken = min(cost * quota.grain, saturating_sub(most or MOST_USED, used))
  bucket.set(quota, state, used + taken, now)
  if is_refundable and used + taken > 0 then
    state.marks = state.marks or {}
    add_mark(state.marks, now, used + taken)
  end
  return div(taken, quota.grain)
end

-- Takes units of a refused request, down to a debt.
function bucket.penalise(quota, state, now, cost, most_debt)
  bucket.take(quota, state, now, cost, false, (quota.capacity + most_debt) * quota.grain)
end

-- Gives back a charge, if no fewer grains were used since, and otherwise the part that time has not refilled. The refill
-- is unknown if the bucket was full since, or counted by another quota.
function bucket.refund(quota, state, now, cost, taken_at, is_prepared)
  local used = bucket.note(quota, state, now)
  local first = state.marks and mark_at(state.marks, taken_at)
  -- The charge took no more than a bucket counts.
  local charged, back = min(cost * quota.grain, MOST_USED), 0
  if first or not is_prepared then
    back = saturating_sub(charged, saturating_sub(now, taken_at) * quota.pace)
  end
  if first then
    back = max(back, state.marks[first + 1])
  end
  back = min(back, charged, used)
  if state.marks then
    state.marks = refunded_marks(state.marks, first or 1, back)
  end
  bucket.set(quota, state, used - back, now)
end

function bucket.encode(quota, state)
  return quota.pace > 1 and pack('<I7', state.rest) or ''
end

-- Reads stored bytes. Returns the state and the position after it.
function bucket.decode(quota, bytes, position, full_at)
  local rest = 0
  if quota.pace > 1 then
    rest, position = unpack_from('<I7', bytes, position)
  end
  return { full_at = full_at, rest = rest }, position
end

