-- Holds, oldest first. Each of the `entries` has the instant of its charge, which identifies the hold, the instant of its
-- expiry, and its units. `first` and `last` are the first and the last expiry.
local holds = {}
ALGORITHMS[HOLDS] = holds

local HOLD, HOLD_WIDTH = '<I7I7I7', 21

function holds.fresh()
  return { entries = '', units = 0, first = 0, last = 0 }
end

-- Drops expired holds.
function holds.advance(_, state, now)
  if state.first > now then
    return state
  end
  local expired
  state.units, state.first, state.last = 0, math.huge, 0
  for position = 1, #state.entries, HOLD_WIDTH do
    local _, expires_at, units = unpack_from(HOLD, state.entries, position)
    if expires_at > now then
      state.units = state.units + units
      state.first, state.last = min(state.first, expires_at), max(state.last, expires_at)
    else
      expired = ''
    end
  end
  if expired then
    state.entries = string.gsub(state.entries, string.rep('.', HOLD_WIDTH), function(hold)
      local _, expires_at = unpack_from(HOLD, hold)
      return expires_at <= now and expired
    end)
  end
  return state
end

function holds.used(_, state)
  return state.units
end

-- Nobody knows when a hold is released, so a refused request retries within a second.
function holds.until_fits(quota, state, now, cost)
  if state.units + cost <= quota.capacity then
    return 0
  end
  return min(LONGEST_RETRY, state.first - now)
end

function holds.full_at(_, state)
  return state.last
end

-- Replaces the entries, and counts them again.
function holds.set(quota, state, now, entries)
  state.entries, state.first = entries, 0
  holds.advance(quota, state, now)
end

function holds.take(quota, state, now, cost)
  local entries, units = state.entries, 0
  if #entries >= LONGEST_LOG * HOLD_WIDTH then
    -- Only charges beyond the capacity get here.
    return 0
  end
  local before, same = split(entries, HOLD_WIDTH, now)
  if same then
    local _, _, held = unpack_from(HOLD, same)
    entries, units = before, held
  end
  local taken = min(cost, div(MOST_COUNTED, LONGEST_LOG) - units)
  holds.set(quota, state, now, entries .. pack(HOLD, now, now + quota.pace, units + taken))
  return taken
end

-- A refused request has no hold that it could release.
function holds.penalise() end

function holds.refund(quota, state, now, cost, taken_at)
  local before, hold, after = split(state.entries, HOLD_WIDTH, taken_at)
  if hold then
    local _, expires_at, units = unpack_from(HOLD, hold)
    if units <= cost then
      -- The hold stays for its first microsecond, so that no later hold has its instant.
      units, expires_at = cost, taken_at + 1
    end
    holds.set(quota, state, now, before .. pack(HOLD, taken_at, expires_at, units - cost) .. after)
  end
end

-- Extends a hold to a full expiry time from now. Returns its units.
function holds.renew(quota, state, now, taken_at)
  local before, hold, after = split(state.entries, HOLD_WIDTH, taken_at)
  if not hold then
    return 0
  end
  local _, _, units = unpack_from(HOLD, hold)
  if units > 0 then
    holds.set(quota, state, now, before .. pack(HOLD, taken_at, now + quota.pace, units) .. after)
  end
  return units
end

function holds.encode(_, state)
  return state.entries
end

function holds.decode(_, bytes, position)
  local state, behind = holds.fresh(), #bytes + 1
  state.entries = sub(bytes, position)
  return state, behind - (behind - position) % HOLD_WIDTH
end

