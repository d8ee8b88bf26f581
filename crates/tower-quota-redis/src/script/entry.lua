-- Reads the entry of a client. A counter is a charge or the strikes of a charge, and refers to the `entry`.
local function load_entry(stored)
  local loaded = { at = 0, slots = {}, slot_of = {} }
  if not stored then
    return loaded
  end
  local version, at, position = unpack_from(HEADER, stored)
  if version ~= VERSION then
    error('a version of another build')
  end
  local longest = 0
  while position <= #stored do
    local length, body = varint(stored, position)
    position = body + length
    if length < 15 then
      error('an entry that was cut off')
    end
    local id = unpack_from('<I4', stored, body)
    local full = unpack_from('<I7', stored, position - 7)
    local slot = { id = id, bytes = sub(stored, body, position - 1), full_at = full }
    if loaded.slot_of[id] then
      error('a limit that is there twice')
    end
    loaded.slots[#loaded.slots + 1], loaded.slot_of[id] = slot, slot
    longest = max(longest, full - at)
  end
  if at > border + longest then
    -- An instant so far ahead comes from a wrong clock.
    return load_entry(nil)
  end
  loaded.at = at
  return loaded
end

-- Parses a slot. Uses the quota of the counter if the slot has the same quota.
local function parse(slot, counter)
  local bytes, quota, position = slot.bytes, counter, nil
  local kind = byte(bytes, 5)
  if counter and sub(bytes, 1, #counter.head) == counter.head then
    position = #counter.head + 1
  else
    quota, position = stored_quota(bytes, 5)
    quota.head = sub(bytes, 1, position - 1)
    setmetatable(quota, ALGORITHMS[quota.kind])
  end
  local body = sub(bytes, 1, -8)
  local state, behind = quota:decode(body, position, slot.full_at)
  if kind == TOKEN_BUCKET + WATCHED then
    state.marks = unpack_marks(body, behind, #body)
  elseif behind ~= #body + 1 then
    error('a state that does not end')
  end
  slot.quota, slot.state = quota, state
end

local function slot_bytes(quota, state)
  local bytes = quota.head .. quota:encode(state) .. pack('<I7', quota:full_at(state))
  return state.marks and with_marks(bytes, state.marks) or bytes
end

-- Returns the slot of a counter, if units are still used.
local function slot_for(counter, now)
  local slot = counter.entry.slot_of[counter.id]
  -- An earlier build may have stored holds by the id of a rate.
  if slot and slot.full_at > now and (byte(slot.bytes, 5) == CONCURRENT) == (counter.kind == CONCURRENT) then
    if not slot.quota then
      parse(slot, counter)
      slot.state.key = counter.key
    end
    return slot
  end
end

-- Returns the state of a counter as of `now`.
local function state_for(counter, now)
  local slot = slot_for(counter, now)
  if not slot then
    return counter:fresh(now)
  end
  slot.state = slot.quota:advance(slot.state, now)
  if shares_state(slot.quota, counter) then
    return slot.state
  end
  return convert(slot.state, slot.quota, counter, now)
end

-- Returns the microseconds for which the strikes of a charge block the limit.
local function blocked_for(charge, now)
  local strikes = charge.strikes
  return strikes and strikes:until_fits(state_for(strikes, now), now, 0) or 0
end

-- Returns the microseconds until a counter admits units, and the wait of a request that is admitted now.
local function until_admitted(counter, state, now, units)
  local wait = counter:until_fits(state, now, units)
  if has(counter.flags, QUEUES) then
    -- The queue must have a free place, and the wait must be short enough.
    local turn = div_ceil(counter:used(state, now), counter.pace)
    return max(wait, turn - counter.max_wait), turn
  elseif counter.kind == TOKEN_BUCKET then
    return max(wait - counter.max_wait, 0), wait
  end
  return wait, wait
end

-- Returns the remaining units with which a charge within the capacity waits at most `max_wait` microseconds.
local function needed_before(counter, units)
  local queues, waiting = has(counter.flags, QUEUES), counter.max_wait * counter.pace
  -- A charge waits for the turns of all earlier charges in the queue, and needs a place there.
  local grains = (queues and counter.capacity or units) * counter.grain
  return max(queues and units or 0, div_ceil(max(grains - waiting, 0), counter.grain))
end

-- Returns the microseconds until units fit by the old quota of a counter, if the counter may stay until then. A window or
-- log cannot keep the part of a unit that a conversion finds, and the next unit of a bucket comes later if its rate is
-- lower. Each conversion of a refused client must bring the next admission forward, because otherwise versions in turn
-- would convert the state again and again, and lock the client out.
local function until_old_fits(counter, now, units)
  local slot = slot_for(counter, now)
  local old = slot and slot.quota
  if
    not slot
    or counter.kind == TOKEN_BUCKET and old.kind == TOKEN_BUCKET
    or shares_state(old, counter)
    or units > counter.capacity
  then
    return math.huge
  end
  local old_units = needed_before(counter, units)
  if old_units > old.capacity then
    return math.huge
  end
  slot.state = old:advance(slot.state, now)
  return old:until_fits(slot.state, now, old_units)
end

-- Returns the units that must fit for a charge.
local function needed(charge)
  if charge.is_report then
    return has(charge.flags, REPORTED) and 1 or 0
  end
  return charge.units
end

-- Returns the outcome for the units of a charge, and the wait in microseconds.
local function judge(charge, now)
  local flags, units = charge.flags, needed(charge)
  if has(flags, FORCED) or units == 0 and not charge.is_report then
    return ADMIT, 0
  elseif units > charge.capacity then
    return NEVER, 0
  end
  local retry, wait = until_admitted(charge, state_for(charge, now), now, units)
  if retry > 0 then
    retry = min(retry, until_old_fits(charge, now, units))
  end
  local blocked = blocked_for(charge, now)
  if retry + blocked > 0 then
    return REFUSE, max(retry, blocked)
  end
  -- A report makes no request wait.
  return ADMIT, charge.is_report and 0 or wait
end

-- Returns the remaining units, less than 0 for a debt, and the microseconds until the limit is full.
local function left(charge, now)
  local state, blocked = state_for(charge, now), blocked_for(charge, now)
  local reset = saturating_sub(charge:full_at(state), now)
  local balance = charge:balance(state, now)
  if blocked > 0 then
    return min(balance, 0), max(reset, blocked)
  end
  return balance, reset
end

-- Returns whether the stored quota of a counter has other numbers.
local function has_other_quota(counter, now)
  local slot = slot_for(counter, now)
  local quota = slot and slot.quota or counter
  return not shares_state(quota, counter) or quota.capacity ~= counter.capacity or quota.pace ~= counter.pace
end

-- Returns whether a request that takes nothing converts a counter. A counter stays if the new quota would be full. A
-- counter that refuses also stays if the units fit sooner by the old quota.
local function needs_conversion(counter, now, units)
  if not has_other_quota(counter, now) then
    return false
  end
  local state, old_retry, stays = state_for(counter, now), until_old_fits(counter, now, units), false
  if old_retry < math.huge then
    local retry = until_admitted(counter, state, now, units)
    stays = retry > 0 and old_retry <= retry
  end
  return not stays and counter:full_at(state) > now
end

-- Returns whether the same quota or windows still count a charge. In a queue, the charge must be the last.
local function may_refund(charge, taken_at, now)
  local slot = slot_for(charge, now)
  if not slot or not shares_state(slot.quota, charge) then
    return false
  end
  -- A refund sends the end of the turn in `max_wait`.
  return not has(charge.flags, QUEUES) or slot.full_at <= taken_at + charge.max_wait
end

-- Converts the state of a counter to the current quota, and changes the state by a method. Returns the units that the
-- change takes.
local function edit(counter, now, change, ...)
  local entry, state = counter.entry, state_for(counter, now)
  local slot = entry.slot_of[counter.id]
  if slot and slot.quota ~= counter then
    counter.is_converted = has_other_quota(counter, now)
  end
  trim(state)
  local taken = change and counter[change](counter, state, now, ...) or 0
  if not slot then
    slot = { id = counter.id }
    entry.slots[#entry.slots + 1], entry.slot_of[counter.id] = slot, slot
  end
  slot.quota, slot.state, slot.full_at = counter, state, counter:full_at(state)
  slot.bytes = slot_bytes(counter, state)
  entry.is_changed = true
  return taken
end

-- Removes the slot with a number.
local function forget(entry, id)
  entry.is_changed = true
  if entry.slot_of[id] then
    -- `encode` drops the slot.
    entry.slot_of[id].full_at, entry.slot_of[id] = 0, nil
  end
end

-- Returns the stored bytes, and the instant at which the entry is full. A changed entry loses full slots.
local function encode(entry, now, is_abridged)
  local parts, longest = { pack(HEADER, VERSION, entry.is_changed and now or entry.at) }, 0
  for _, slot in ipairs(entry.slots) do
    local bytes = slot.bytes
    if is_abridged and byte(bytes, 5) == SLIDING_LOG then
      parse(slot)
      local log = slot.quota:advance(slot.state, now)
      abridge(log)
      bytes = slot_bytes(slot.quota, log)
    elseif is_abridged and slot.state and byte(bytes, 5) == CONCURRENT then
      -- Leave out expired holds.
      bytes = slot_bytes(slot.quota, slot.state)
    end
    if slot.full_at > now or not entry.is_changed then
      parts[#parts + 1] = with_length(bytes)
      longest = max(longest, slot.full_at)
    end
  end
  return concat(parts), longest
end

