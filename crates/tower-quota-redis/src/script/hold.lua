-- Holds, which live in a sorted set next to the entry. A member is the instant of the charge, which identifies the hold,
-- and its score is the expiry. If a hold had more than one unit or was released in its first microsecond, a second member
-- with a `u` at the end has the negative units as its score. The entry has the number of holds, their units and the last
-- expiry. A set without a slot in the entry comes from an earlier entry, and counts as missing.
--
-- A change is written at once. The server may refuse the first write of a call, and then the decision changes nothing.
-- If the set does not have the holds of the entry, because one of both was lost, the set is right.
local holds = new_algorithm(CONCURRENT)

local INSTANT = '<I7'
-- The number of expired holds with units of their own that each decision without a change may read again.
local MOST_REREAD = 100

-- Runs a command on the set. Deletes a key of another type, which no store has written.
local function on_set(state, command, ...)
  local answer = redis.pcall(command, state.key, ...)
  local refusal = type(answer) == 'table' and answer.err
  if refusal and string.find(refusal, 'WRONGTYPE', 1, true) then
    on_set(state, 'DEL')
    return on_set(state, command, ...)
  elseif refusal then
    -- Redis turns an error with a table into a text.
    refused = refusal
    error(refusal)
  end
  return answer
end

-- Returns the lower bound of the holds that are live at an instant.
local function after(instant)
  return string.format('(%d', instant)
end

local function units_of(state, member)
  local units = on_set(state, 'ZSCORE', member .. 'u')
  return units and -tonumber(units) or 1
end

-- Returns the expiry of a live hold.
local function expiry_of(state, member, now)
  local expires_at = tonumber(on_set(state, 'ZSCORE', member) or 0)
  return expires_at > now and expires_at
end

local function last_expiry(state)
  local last = on_set(state, 'ZRANGE', 0, 0, 'REV', 'WITHSCORES')
  return max(tonumber(last[2] or 0), 0)
end

-- Counts the live holds of the set, and removes the others with their units. Deletes a set that no store has written.
local function recount(state, now)
  on_set(state, 'ZREMRANGEBYSCORE', '(0', now)
  state.count, state.units, state.full_at, state.is_recounted = 0, 0, 0, true
  local live = on_set(state, 'ZRANGE', after(now), '+inf', 'BYSCORE', 'LIMIT', 0, LONGEST_LOG + 1, 'WITHSCORES')
  local has_hold = {}
  for i = 1, #live, 2 do
    has_hold[live[i] .. 'u'] = true
    if #live[i] ~= 7 or #live > 2 * LONGEST_LOG or tonumber(live[i + 1]) > now + LONGEST_TTL then
      on_set(state, 'DEL')
      state.count, state.units, state.full_at = 0, 0, 0
      return
    end
    state.count, state.units = state.count + 1, state.units + units_of(state, live[i])
    state.full_at = tonumber(live[i + 1])
  end
  for _, member in ipairs(on_set(state, 'ZRANGE', '-inf', 0, 'BYSCORE')) do
    if not has_hold[member] then
      on_set(state, 'ZREM', member)
    end
  end
end

-- Returns a state without holds. The set may have holds of an earlier entry.
function holds:fresh()
  return { key = self.key, count = 0, units = 0, full_at = 0, is_new = true }
end

-- Subtracts the holds that have expired since the last call. The next change removes them from the set.
function holds:advance(state, now)
  local from = state.as_of or 0
  if from == now or state.is_new then
    return state
  end
  state.as_of = now
  local live = on_set(state, 'ZCOUNT', after(now), '+inf')
  if live == state.count then
    return state
  end
  local expired = on_set(state, 'ZCOUNT', after(from), now)
  if live + expired ~= state.count then
    recount(state, now)
    return state
  end
  state.count, state.expired = live, state.expired or {}
  if on_set(state, 'ZCOUNT', '-inf', 0) == 0 then
    state.units = state.units - expired
    return state
  end
  for _, member in ipairs(on_set(state, 'ZRANGE', after(from), now, 'BYSCORE')) do
    state.units = state.units - units_of(state, member)
    table.insert(state.expired, member .. 'u')
  end
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
  local first = on_set(state, 'ZRANGE', after(now), '+inf', 'BYSCORE', 'LIMIT', 0, 2, 'WITHSCORES')
  -- A hold that was released in its first microsecond gives back no units.
  if first[1] == pack(INSTANT, now) and tonumber(first[2]) == now + 1 then
    table.remove(first, 1)
    table.remove(first, 1)
  end
  return min(LONGEST_RETRY, tonumber(first[2] or math.huge) - now)
end

-- Removes the expired holds from the set, before a change.
local function trim(state)
  if not state.expired then
    return
  end
  on_set(state, 'ZREMRANGEBYSCORE', '(0', state.as_of)
  for _, member in ipairs(state.expired) do
    on_set(state, 'ZREM', member)
  end
  state.expired = nil
end

-- Sets the expiry of a hold, and its units if given.
local function put(state, member, expires_at, units)
  if units then
    on_set(state, 'ZADD', expires_at, member, -units, member .. 'u')
  else
    on_set(state, 'ZADD', expires_at, member)
  end
  if expires_at > state.full_at then
    state.full_at = expires_at
    local lifetime = max(div_ceil(expires_at - clock, 1000), shortest_lifetime)
    on_set(state, 'PEXPIRE', string.format('%d', lifetime))
  end
end

-- Takes units for the hold of an instant.
function holds:take_at(state, now, instant, cost)
  if state.count >= LONGEST_LOG then
    -- Only charges beyond the capacity get here.
    return 0
  elseif state.is_new and on_set(state, 'ZCARD') > 0 then
    -- After any write, a server without free memory would store the hold.
    on_set(state, 'DEL')
  end
  state.is_new = false
  local held = state.taken_at == instant and state.taken or 0
  local units = min(held + cost, MOST_HELD)
  put(state, pack(INSTANT, instant), now + self.pace, units > 1 and units)
  state.count, state.units = state.count + (held > 0 and 0 or 1), state.units + units - held
  state.taken_at, state.taken = instant, units
  return units - held
end

function holds:take(state, now, cost)
  return self:take_at(state, now, now, cost)
end

-- A refused request has no hold, and could release no hold later.
function holds:penalise() end

function holds:refund(state, now, cost, taken_at)
  local member = pack(INSTANT, taken_at)
  local expires_at = expiry_of(state, member, now)
  if not expires_at then
    return
  end
  local units = units_of(state, member)
  local kept = saturating_sub(units, cost)
  state.units = state.units - units + kept
  if kept > 0 then
    put(state, member, expires_at, kept)
    return
  elseif taken_at < now then
    on_set(state, 'ZREM', member, member .. 'u')
    state.count = state.count - 1
  else
    -- Keep the hold for the first microsecond, so that no later hold has the same instant.
    put(state, member, taken_at + 1, 0)
  end
  if expires_at == state.full_at then
    state.full_at = last_expiry(state)
  end
end

-- Extends a hold to a full expiry time from now, or takes the lost units. Returns the units of the hold.
function holds:renew(state, now, taken_at, lost_units)
  -- Only a wrong clock gives a later instant. No hold is later than the last change.
  taken_at = min(taken_at, now)
  local member = pack(INSTANT, taken_at)
  local expires_at = not state.is_new and expiry_of(state, member, now)
  local units = expires_at and units_of(state, member) or 0
  if units == 0 then
    return lost_units > 0 and self:take_at(state, now, taken_at, lost_units) or 0
  end
  put(state, member, now + self.pace)
  if expires_at == state.full_at and expires_at > now + self.pace then
    state.full_at = last_expiry(state)
  end
  return units
end

function holds:encode(state)
  return pack('<I7I7', state.count, state.units)
end

function holds:decode(bytes, position, full_at)
  local count, units, behind = unpack_from('<I7I7', bytes, position)
  return { count = count, units = units, full_at = full_at }, behind
end

