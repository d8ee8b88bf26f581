-- Sliding window counter. `start`: when the current window started; `before` and `count`: the units counted in the
-- window before it and in it.
local sliding_window = {}

function sliding_window.start(quota, now)
  return now - now % quota.period
end

function sliding_window.fresh(quota, now)
  return { start = sliding_window.start(quota, now), before = 0, count = 0 }
end

-- Start, previous count and count of the window at `now`.
function sliding_window.at(quota, state, now)
  local start = sliding_window.start(quota, now)
  local passed = start - state.start
  if passed == 0 then
    return start, state.before, state.count
  elseif passed == quota.period then
    return start, state.count, 0
  end
  return start, 0, 0
end

function sliding_window.steps(quota)
  return div(quota.period, quota.grain)
end

-- The steps of the earlier window that are less than a period ago.
function sliding_window.overlap(quota, start, now)
  return min(div_ceil(start + quota.period - now, quota.grain), sliding_window.steps(quota))
end

function sliding_window.units_left(quota, start, before, count, now)
  local steps = sliding_window.steps(quota)
  local counted = before * sliding_window.overlap(quota, start, now) + count * steps
  return div(saturating_sub(quota.capacity * steps, counted), steps)
end

-- Units counted beyond the capacity, rounded up: a debt.
function sliding_window.owed(quota, state, now)
  local steps = sliding_window.steps(quota)
  local counted = state.before * sliding_window.overlap(quota, state.start, now) + state.count * steps
  return div_ceil(saturating_sub(counted, quota.capacity * steps), steps)
end

-- Makes the counts come to `wanted` units at `now`: more in this window, or less in it, and only then less in the one
-- before.
function sliding_window.adjust(quota, state, now, wanted)
  local steps, overlap = sliding_window.steps(quota), sliding_window.overlap(quota, state.start, now)
  -- What another quota counted may be more than the products below could hold.
  local before, count = min(state.before, 2 * quota.capacity), min(state.count, 2 * quota.capacity)
  local used = div_ceil(before * overlap + count * steps, steps)
  if used <= wanted then
    count = min(count + wanted - used, 2 * quota.capacity)
  elseif used - wanted <= count then
    count = count - (used - wanted)
  else
    before, count = div(wanted * steps, overlap), 0
  end
  state.before, state.count = before, count
end

-- How far into a window an earlier count of `before` first weighs at most `room` units.
function sliding_window.first_light_enough(quota, before, room)
  if before <= room then
    return 0
  end
  local overlap = div(room * sliding_window.steps(quota), before)
  return quota.period - overlap * quota.grain
end

function sliding_window.judge(quota, state, _, now, cost)
  local start, before, count = sliding_window.at(quota, state, now)
  if cost <= sliding_window.units_left(quota, start, before, count, now) then
    return ADMIT, 0
  end
  local into = now - start
  if count + cost <= quota.capacity then
    -- The earlier window has to fade far enough.
    return REFUSE, sliding_window.first_light_enough(quota, before, quota.capacity - count - cost) - into
  end
  -- This window has to end, become the earlier one, and fade far enough.
  return REFUSE, quota.period - into + sliding_window.first_light_enough(quota, count, quota.capacity - cost)
end

function sliding_window.left(quota, state, _, now)
  local start, before, count = sliding_window.at(quota, state, now)
  local reset = start + quota.period - now
  if count > 0 then
    reset = reset + quota.period
  elseif before == 0 then
    reset = 0
  end
  return sliding_window.units_left(quota, start, before, count, now), reset
end

function sliding_window.advance(quota, state, _, now)
  state.start, state.before, state.count = sliding_window.at(quota, state, now)
end

function sliding_window.take(quota, state, _, cost)
  state.count = min(state.count + cost, 2 * quota.capacity)
end

function sliding_window.give_back(quota, state, taken_at, cost)
  if taken_at >= state.start then
    state.count = saturating_sub(state.count, cost)
  elseif state.start - taken_at <= quota.period then
    state.before = saturating_sub(state.before, cost)
  end
end

