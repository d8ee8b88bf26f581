-- Sliding window counter. `start`: when the current window started; `before` and `count`: the units counted in the
-- window before it and in it.
local sliding_window = {}
ALGORITHMS[SLIDING_WINDOW] = sliding_window

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

-- The estimate of the used units, rounded up.
function sliding_window.estimate(quota, start, before, count, now)
  local steps = sliding_window.steps(quota)
  return div_ceil(before * sliding_window.overlap(quota, start, now) + count * steps, steps)
end

-- The used units of a state that is as of `now`.
function sliding_window.used(quota, state, now)
  return sliding_window.estimate(quota, state.start, state.before, state.count, now)
end

-- How far into a window an earlier count of `before` first weighs at most `room` units.
function sliding_window.first_light_enough(quota, before, room)
  if before <= room then
    return 0
  end
  local overlap = div(room * sliding_window.steps(quota), before)
  return quota.period - overlap * quota.grain
end

function sliding_window.judge(quota, state, now, cost)
  local start, before, count = sliding_window.at(quota, state, now)
  if sliding_window.estimate(quota, start, before, count, now) + cost <= quota.capacity then
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

function sliding_window.balance(quota, state, now)
  local start, before, count = sliding_window.at(quota, state, now)
  return quota.capacity - sliding_window.estimate(quota, start, before, count, now)
end

function sliding_window.full_at(quota, state)
  if state.count > 0 then
    return state.start + 2 * quota.period
  elseif state.before > 0 then
    return state.start + quota.period
  end
  return 0
end

function sliding_window.advance(quota, state, now)
  state.start, state.before, state.count = sliding_window.at(quota, state, now)
end

function sliding_window.take(quota, state, _, cost)
  -- The weighted sums stay below 2^53.
  local taken = min(cost, div(MOST_USED, sliding_window.steps(quota)) - state.count)
  state.count = state.count + taken
  return taken
end

function sliding_window.refund(quota, state, _, taken_at, cost)
  if taken_at >= state.start then
    state.count = saturating_sub(state.count, cost)
  elseif state.start - taken_at <= quota.period then
    state.before = saturating_sub(state.before, cost)
  end
end

function sliding_window.encode(_, state)
  return pack('<I7I7I7', state.start, state.before, state.count)
end

function sliding_window.decode(_, bytes)
  local start, before, count = unpack_from('<I7I7I7', bytes)
  return { start = start, before = before, count = count }, sub(bytes, 22)
end

