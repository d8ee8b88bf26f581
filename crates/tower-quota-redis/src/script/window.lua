-- Fixed windows and sliding window counters. `start` is the start of the current window. `before` and `count` are the
-- units counted in the window before and in the current window. A fixed window has no window before.
local window = new_algorithm(FIXED_WINDOW)
ALGORITHMS[FIXED_WINDOW + FROM_FIRST_REQUEST] = window
ALGORITHMS[SLIDING_WINDOW] = window

function window:advance(state, now)
  local period, start, before = self.pace, state.start, 0
  if self.kind < FROM_FIRST_REQUEST then
    start = saturating_sub(now, (now % period + period - self.offset) % period)
  elseif now - start >= period then
    start = now
  end
  if start == state.start then
    return state
  elseif self.kind == SLIDING_WINDOW and start == state.start + period then
    before = state.count
  end
  return { start = start, before = before, count = 0 }
end

function window:fresh(now)
  return self:advance({ start = now, before = 0, count = 0 }, now)
end

function window:ends(state)
  if state.start < self.offset then
    -- The first window begins before the epoch.
    return self.offset
  end
  return state.start + self.pace
end

function window:steps()
  return self.kind == SLIDING_WINDOW and div(self.pace, self.grain) or 1
end

function window:overlap(state, now)
  return min(div_ceil(state.start + self.pace - now, self.grain), self:steps())
end

function window:used(state, now)
  if state.before == 0 then
    return state.count
  end
  return state.count + div_ceil(state.before * self:overlap(state, now), self:steps())
end

-- Returns the time into a window after which the earlier count weighs at most `room` units.
function window:until_weight_fits(before, room)
  if before <= room or self.kind ~= SLIDING_WINDOW then
    return 0
  end
  return self.pace - div(room * self:steps(), before) * self.grain
end

function window:until_fits(state, now, cost)
  local free = self.capacity - cost
  if self:used(state, now) <= free then
    return 0
  elseif state.count <= free then
    -- The earlier window has to fade far enough.
    return state.start - now + self:until_weight_fits(state.before, free - state.count)
  end
  -- The current window has to end and fade far enough.
  return self:ends(state) - now + self:until_weight_fits(state.count, free)
end

function window:full_at(state)
  if state.before + state.count == 0 then
    return 0
  elseif state.count > 0 and self.kind == SLIDING_WINDOW then
    return state.start + 2 * self.pace
  end
  return self:ends(state)
end

function window:take(state, now, cost)
  -- The window begins with the first request.
  if state.count == 0 and self.kind >= FROM_FIRST_REQUEST then
    state.start = now
  end
  local taken = min(cost, div(MOST_COUNTED, self:steps()) - state.count)
  state.count = state.count + taken
  return taken
end

function window:take_evenly(state, now, units)
  if self.kind == SLIDING_WINDOW and units <= self.capacity then
    -- A full window before fades at the rate of the quota. A debt counts from now on.
    state.before = min(div(units * self:steps(), self:overlap(state, now)), self.capacity)
  end
  self:take(state, now, units - self:used(state, now))
  if self.kind >= FROM_FIRST_REQUEST then
    state.start = saturating_sub(now + self:refill_micros(units), self.pace)
  end
end

function window:refund(state, _, cost, taken_at)
  if taken_at >= state.start then
    state.count = saturating_sub(state.count, cost)
  elseif state.start - taken_at <= self.pace then
    state.before = saturating_sub(state.before, cost)
  end
end

function window:encode(state)
  local before = self.kind == SLIDING_WINDOW and pack('<I7', state.before) or ''
  return pack('<I7', state.start) .. before .. pack('<I7', state.count)
end

function window:decode(bytes, position)
  local state, behind = { before = 0 }, nil
  state.start, behind = unpack_from('<I7', bytes, position)
  if self.kind == SLIDING_WINDOW then
    state.before, behind = unpack_from('<I7', bytes, behind)
  end
  state.count, behind = unpack_from('<I7', bytes, behind)
  return state, behind
end

