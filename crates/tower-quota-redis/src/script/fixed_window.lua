-- Fixed windows. `start`: when the window started; `count`: the units counted in it.
local fixed_window = {}
ALGORITHMS[FIXED_WINDOW] = fixed_window

function fixed_window.start(quota, start, now)
  local period = quota.period
  if quota.offset ~= FIRST_REQUEST then
    return saturating_sub(now, (now % period + period - quota.offset) % period)
  end
  if now - start < period then
    return start
  end
  return now
end

-- The end of the window that started at `start`.
function fixed_window.ends(quota, start)
  if quota.offset ~= FIRST_REQUEST and start < quota.offset then
    -- The one that the epoch cut off.
    return quota.offset
  end
  return start + quota.period
end

function fixed_window.fresh(quota, now)
  return { start = fixed_window.start(quota, now, now), count = 0 }
end

-- Start and count of the window at `now`.
function fixed_window.at(quota, state, now)
  local start = fixed_window.start(quota, state.start, now)
  if start == state.start then
    return start, state.count
  end
  return start, 0
end

function fixed_window.judge(quota, state, now, cost)
  local start, count = fixed_window.at(quota, state, now)
  if count + cost <= quota.capacity then
    return ADMIT, 0
  end
  return REFUSE, fixed_window.ends(quota, start) - now
end

function fixed_window.balance(quota, state, now)
  local _, count = fixed_window.at(quota, state, now)
  return quota.capacity - count
end

-- The units that a window that is as of `now` has counted.
function fixed_window.used(_, state)
  return state.count
end

function fixed_window.full_at(quota, state)
  if state.count == 0 then
    return 0
  end
  return fixed_window.ends(quota, state.start)
end

function fixed_window.advance(quota, state, now)
  state.start, state.count = fixed_window.at(quota, state, now)
end

function fixed_window.take(quota, state, now, cost)
  -- A window that is anchored to its first request begins with it.
  if state.count == 0 and quota.offset == FIRST_REQUEST then
    state.start = now
  end
  local taken = min(cost, MOST_COUNTED - state.count)
  state.count = state.count + taken
  return taken
end

function fixed_window.refund(_, state, _, taken_at, cost)
  if taken_at >= state.start then
    state.count = saturating_sub(state.count, cost)
  end
end

function fixed_window.encode(_, state)
  return pack('<I7I7', state.start, state.count)
end

function fixed_window.decode(_, bytes)
  local start, count = unpack_from('<I7I7', bytes)
  return { start = start, count = count }, sub(bytes, 15)
end

