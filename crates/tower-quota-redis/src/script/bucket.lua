-- Decides token buckets, GCRA and leaky buckets. A bucket is full at `full_at`. `rest` is the surplus of the last
-- refill, in grains. low_marks.lua describes the `marks`.
local bucket = new_algorithm(TOKEN_BUCKET)

-- Returns the position of the last mark at or before an instant.
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

function bucket:fresh()
  return { full_at = 0, rest = 0 }
end

function bucket:advance(state)
  return state
end

-- Sets the used grains, and returns the state.
function bucket:set(state, used, now)
  if used == 0 then
    state.full_at, state.rest, state.marks = 0, 0, nil
  else
    state.rest = -used % self.pace
    state.full_at = now + (used + state.rest) / self.pace
  end
  return state
end

function bucket:used(state, now)
  return min(saturating_sub(saturating_sub(state.full_at, now) * self.pace, state.rest), MOST_USED)
end

function bucket:until_fits(state, now, cost)
  local missing = self:used(state, now) + (cost - self.capacity) * self.grain
  return div_ceil(max(missing, 0), self.pace)
end

function bucket:take(state, now, cost, is_refundable, most)
  local used = self:used(state, now)
  note_low(state.marks, used)
  local taken = min(cost * self.grain, saturating_sub(most or MOST_USED, used))
  self:set(state, used + taken, now)
  if is_refundable then
    state.marks = state.marks or {}
    add_mark(state.marks, now, used + taken)
  end
  return div(taken, self.grain)
end

-- Takes units of a refused request, into debt up to `most_debt`.
function bucket:penalise(state, now, cost, most_debt)
  self:take(state, now, cost, false, (self.capacity + most_debt) * self.grain)
end

-- Refunds the least used grains since the charge, or the part of the charge that time has not refilled. The refill is
-- unknown if the bucket has been full since the charge, or counted by another quota.
function bucket:refund(state, now, cost, taken_at, is_prepared)
  local used = self:used(state, now)
  note_low(state.marks, used)
  local first = state.marks and mark_at(state.marks, taken_at)
  -- The charge took at most MOST_USED grains.
  local charged, back = min(cost * self.grain, MOST_USED), 0
  if first or not is_prepared then
    back = saturating_sub(charged, saturating_sub(now, taken_at) * self.pace)
  end
  if first then
    back = max(back, state.marks[first + 1])
  end
  back = min(back, charged, used)
  if state.marks then
    state.marks = refunded_marks(state.marks, first or 1, back)
  end
  self:set(state, used - back, now)
end

function bucket:encode(state)
  return self.pace > 1 and pack('<I7', state.rest) or ''
end

-- Reads stored bytes. Returns the state and the position after the state.
function bucket:decode(bytes, position, full_at)
  local rest = 0
  if self.pace > 1 then
    rest, position = unpack_from('<I7', bytes, position)
  end
  return { full_at = full_at, rest = rest }, position
end

