-- Fixed windows and sliding window counters. `start` is the start of the current window. `before` and `count` are the
-- units counted in the window before and in the current window. A fixed window has no window before.
local window = {}
ALGORITHMS[FIXED_WINDOW] = window
ALGORITHMS[FIXED_WINDOW + FROM_FIRST_REQUEST] = window
ALGORITHMS[SLIDING_WINDOW] = window

window.penalise = penalise

function window.advance(quota, state, now)
  local period, start, passed = quota.pace, state.start, { before = 0, count = 0 }
  if quota.kind < FROM_FIRST_REQUEST then
    start = saturating_sub(now, (now % period + period - quota.offset) % period)
  elseif now - start >= period then
    start = now
  end
  if start == state.start then
    return state
  elseif quota.kind == SLIDING_WINDOW and start == state.start + period then
    passed.before = state.count
  end
  passed.start = start
  return passed
end

function window.fresh(quota, now)
  return window.advance(quota, { start = now, before = 0, count = 0 }, now)
end

function window.ends(quota, state)
  if state.start < quota.offset then
    -- The first window, which begins before the epoch.
    return quota.offset
  end
  return state.start + quota.pace
end

function window.steps(quota)
  return quota.kind == SLIDING_WINDOW and div(quota.pace, quota.grain) or 1
end

function window.used(quota, state, now)
  if state.before == 0 then
    return state.count
  end
  local steps = window.steps(quota)
  local overlap = min(div_ceil(state.start + quota.pace - now, quota.grain), steps)
  return state.count + div_ceil(state.before * overlap, steps)
end

-- Returns how far into a window an earlier count first weighs at most `room` units.
function window.until_weight_fits(quota, before, room)
  if before <= room or quota.kind ~= SLIDING_WINDOW then
    return 0
  end
  return quota.pace - div(room * window.steps(quota), before) * quota.grain
end

function window.until_fits(quota, state, now, cost)
  local free = quota.capacity - cost
  if window.used(quota, state, now) <= free then
    return 0
  elseif state.count <= free then
    -- The window before has to fade far enough.
    return state.start - now + window.until_weight_fits(quota, state.before, free - state.count)
  end
  -- The current window has to end and fade far enough.
  return window.ends(quota, state) - now + window.until_weight_fits(quota, state.count, free)
end

function window.full_at(quota, state)
  if state.before + state.count == 0 then
    return 0
  elseif state.count > 0 and quota.kind == SLIDING_WINDOW then
    return state.start + 2 * quota.pace
  end
  return window.ends(quota, state)
end

function window.take(quota, state, now, cost)
  -- The window of the first request begins with it.
  if state.count == 0 and quota.kind >= FROM_FIRST_REQUEST then
    state.start = now
  end
  local taken = min(cost, div(MOST_COUNTED, window.steps(quota)) - state.count)
  state.count = state.count + taken
  return taken
end

function window.refund(quota, state, _, cost, taken_at)
  if taken_at >= state.start then
    state.count = saturating_sub(state.count, cost)
  elseif state.start - taken_at <= quota.pace then
    state.before = saturating_sub(state.before, cost)
  end
end

function window.encode(quota, state)
  local before = quota.kind == SLIDING_WINDOW and pack('<I7', state.before) or ''
  return pack('<I7', state.start) .. before .. pack('<I7', state.count)
end

function window.decode(quota, bytes, position)
  local state, behind = { before = 0 }, nil
  state.start, behind = unpack_from('<I7', bytes, position)
  if quota.kind == SLIDING_WINDOW then
    state.before, behind = unpack_from('<I7', bytes, behind)
  end
  state.count, behind = unpack_from('<I7', bytes, behind)
  return state, behind
end

