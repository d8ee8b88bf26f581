-- Holds, oldest first. Each has the instant of its charge, the instant of its expiry and its units. Its instant
-- identifies a hold.
local holds = {}
ALGORITHMS[HOLDS] = holds

local HOLD = '<I7I7I7'
local HOLD_WIDTH = 21

function holds.fresh()
  return {}
end

-- Units that are held at `now`, and the first expiry.
function holds.held(state, now)
  local units, first = 0, nil
  for _, hold in ipairs(state) do
    if hold.expires_at > now then
      units, first = units + hold.units, min(first or hold.expires_at, hold.expires_at)
    end
  end
  return units, first
end

function holds.used(_, state, now)
  return (holds.held(state, now))
end

function holds.balance(quota, state, now)
  return quota.capacity - holds.held(state, now)
end

-- Nobody knows when a hold is released, so a refused request retries within a second.
function holds.judge(quota, state, now, cost)
  local units, first = holds.held(state, now)
  if units + cost <= quota.capacity then
    return ADMIT, 0
  end
  return REFUSE, min(LONGEST_RETRY, first and first - now or LONGEST_RETRY)
end

function holds.full_at(_, state)
  local last = 0
  for _, hold in ipairs(state) do
    last = max(last, hold.expires_at)
  end
  return last
end

function holds.advance(_, state, now)
  local kept = {}
  for _, hold in ipairs(state) do
    if hold.expires_at > now then
      kept[#kept + 1] = hold
    end
  end
  for i = 1, max(#state, #kept) do
    state[i] = kept[i]
  end
end

function holds.take(quota, state, now, cost)
  if #state >= LONGEST_LOG then
    -- Only charges beyond the capacity get here.
    return 0
  end
  local newest = state[#state]
  if not newest or newest.taken_at ~= now then
    newest = { taken_at = now, units = 0 }
    state[#state + 1] = newest
  end
  local units = min(cost, div(MOST_COUNTED, LONGEST_LOG) - newest.units)
  newest.units, newest.expires_at = newest.units + units, now + quota.period
  return units
end

function holds.find(state, taken_at)
  for _, hold in ipairs(state) do
    if hold.taken_at == taken_at then
      return hold
    end
  end
end

function holds.refund(quota, state, now, taken_at, cost)
  local hold = holds.find(state, taken_at)
  if hold then
    hold.units = saturating_sub(hold.units, cost)
    if hold.units == 0 then
      -- It stays for its first microsecond, so that no later hold has its instant.
      hold.expires_at = taken_at + 1
    end
  end
  holds.advance(quota, state, now)
end

-- Extends a hold to a full expiry time from now. Returns its units.
function holds.renew(quota, state, now, taken_at)
  local hold = holds.find(state, taken_at)
  if not hold or hold.units == 0 then
    return 0
  end
  hold.expires_at = now + quota.period
  return hold.units
end

function holds.encode(_, state)
  local parts = {}
  for i, hold in ipairs(state) do
    parts[i] = pack(HOLD, hold.taken_at, hold.expires_at, hold.units)
  end
  return table.concat(parts)
end

function holds.decode(_, bytes)
  if #bytes % HOLD_WIDTH ~= 0 then
    error('a hold that was cut off')
  end
  local state = {}
  for position = 1, #bytes, HOLD_WIDTH do
    local taken_at, expires_at, units = unpack_from(HOLD, bytes, position)
    state[#state + 1] = { taken_at = taken_at, expires_at = expires_at, units = units }
  end
  return state, ''
end

