-- Holds, oldest first. An entry has the instant of the charge, the expiry and the units. The instant identifies the
-- hold. `first` is the first expiry, `first_end` is the first expiry of a hold with units, and `full_at` is the last
-- expiry.
local holds = new_algorithm(CONCURRENT)

local HOLD, HOLD_WIDTH = '<I7I7I7', 21

function holds:fresh()
  return { entries = '', units = 0, first = math.huge, first_end = math.huge, full_at = 0 }
end

local function count(state, expires_at, units)
  state.units = state.units + units
  state.first = min(state.first, expires_at)
  -- A hold that was released in its first microsecond gives back no units.
  state.first_end = min(state.first_end, units > 0 and expires_at or math.huge)
  state.full_at = max(state.full_at, expires_at)
end

-- Drops expired holds. Checks `first` before a scan, because a scan of many holds takes long.
function holds:advance(state, now)
  if state.first > now then
    return state
  end
  local kept, from = {}, 1
  state.units, state.first, state.first_end, state.full_at = 0, math.huge, math.huge, 0
  for position = 1, #state.entries, HOLD_WIDTH do
    local _, expires_at, units = unpack_from(HOLD, state.entries, position)
    if expires_at > now then
      count(state, expires_at, units)
    else
      kept[#kept + 1] = sub(state.entries, from, position - 1)
      from = position + HOLD_WIDTH
    end
  end
  state.entries = concat(kept) .. sub(state.entries, from)
  return state
end

function holds:used(state)
  return state.units
end

-- Nobody knows when a hold is released, so a refused request retries within a second.
function holds:until_fits(state, now, cost)
  if state.units + cost <= self.capacity then
    return 0
  end
  return min(LONGEST_RETRY, state.first_end - now)
end

-- Replaces the entries, and counts the units again.
function holds:set(state, now, entries)
  state.entries, state.first = entries, 0
  self:advance(state, now)
end

function holds:take(state, now, cost)
  if #state.entries >= LONGEST_LOG * HOLD_WIDTH then
    -- Only charges beyond the capacity get here.
    return 0
  end
  local before, same = split(state.entries, HOLD_WIDTH, now)
  local expires_at, held = now + self.pace, 0
  if same then
    held = unpack_from('<I7', same, 15)
    self:set(state, now, before)
  end
  local units = min(held + cost, div(MOST_COUNTED, LONGEST_LOG))
  state.entries = state.entries .. pack(HOLD, now, expires_at, units)
  count(state, expires_at, units)
  return units - held
end

-- The request may add a hold at `now`, and every hold needs a different instant.
function holds:take_evenly(state, now, units)
  self:take(state, max(now - 1, 0), units)
end

-- A refused request has no hold, and could release no hold later.
function holds:penalise() end

function holds:refund(state, now, cost, taken_at)
  local before, hold, after = split(state.entries, HOLD_WIDTH, taken_at)
  if hold then
    local _, expires_at, units = unpack_from(HOLD, hold)
    if units <= cost then
      -- Keep the hold for the first microsecond, so that no later hold has the same instant.
      units, expires_at = cost, taken_at + 1
    end
    self:set(state, now, before .. pack(HOLD, taken_at, expires_at, units - cost) .. after)
  end
end

-- Extends a hold to a full expiry time from now. Returns the units of the hold.
function holds:renew(state, now, taken_at)
  local before, hold, after = split(state.entries, HOLD_WIDTH, taken_at)
  if not hold then
    return 0
  end
  local _, _, units = unpack_from(HOLD, hold)
  if units > 0 then
    self:set(state, now, before .. pack(HOLD, taken_at, now + self.pace, units) .. after)
  end
  return units
end

function holds:encode(state)
  return state.entries
end

function holds:decode(bytes, position)
  local behind = #bytes + 1
  return { entries = sub(bytes, position), first = 0 }, behind - (behind - position) % HOLD_WIDTH
end

