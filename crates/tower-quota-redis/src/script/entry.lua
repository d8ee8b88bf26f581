-- Returns whether a charge only reports and takes nothing.
local function is_report(charge)
  return has(charge.flags, REPORTED) or has(charge.flags, REPORTED_UNTIL_DEBT)
end

-- Everything stored of one client. A slot is parsed when its limit is asked for.
local entry = {}

function entry.load(stored)
  local loaded = { is_changed = false, at = 0, slots = {}, slot_of = {} }
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
    local next = body + length
    if length < 15 or next > #stored + 1 then
      error('an entry that was cut off')
    end
    local id = unpack_from('<I4', stored, body)
    local slot = { id = id, bytes = sub(stored, body, next - 1), full_at = unpack_from('<I7', stored, next - 7) }
    if loaded.slot_of[id] then
      error('a limit that is there twice')
    end
    loaded.slots[#loaded.slots + 1], loaded.slot_of[id] = slot, slot
    longest = max(longest, slot.full_at - at)
    position = next
  end
  if at > border + longest then
    -- A clock so far ahead must have been wrong.
    return entry.load(nil)
  end
  loaded.at = at
  return loaded
end

-- Reads the quota of a slot. Returns it, the position of the state, and whether it is a bucket that notes what is used.
local function stored_quota(bytes)
  local kind = string.byte(bytes, 5)
  local is_watched = kind == BUCKET + WATCHED
  if is_watched then
    kind = BUCKET
  end
  local capacity, grain, pace, position
  local offset = 0
  capacity, position = short(bytes, 6)
  grain, position = short(bytes, position)
  pace, position = short(bytes, position)
  if kind == FIXED_WINDOW then
    offset, position = short(bytes, position)
  end
  local is_known = ALGORITHMS[kind] or kind == FIXED_WINDOW + FROM_FIRST_REQUEST
  if not is_known or capacity * grain * pace == 0 then
    error('numbers that no quota has')
  end
  return quota_of(kind, capacity, grain, pace, offset), position, is_watched
end

-- Parses the slot of a counter (a charge, or its strikes). One of which nothing is used any more is the same as
-- none.
function entry.slot(self, counter, now)
  local slot = self.slot_of[counter.id]
  if not slot or slot.full_at <= now then
    return nil
  elseif not slot.quota then
    local bytes, head = slot.bytes, counter.head
    local quota, position, is_watched = counter.quota, #head + 1, false
    if sub(bytes, 1, #head) ~= head then
      quota, position, is_watched = stored_quota(bytes)
    end
    local state, rest = ALGORITHMS[quota.kind].decode(quota, sub(bytes, position, -8), slot.full_at, is_watched)
    if rest ~= '' then
      error('a state that does not end')
    end
    slot.quota, slot.state = quota, state
  end
  return slot
end

-- The stored form; false if nothing is used.
function entry.encode(self)
  local parts = { pack(HEADER, VERSION, self.at) }
  for _, slot in ipairs(self.slots) do
    parts[#parts + 1] = with_length(slot.bytes)
  end
  return #parts > 1 and table.concat(parts)
end

-- What a refusal says of an entry: its stored form, with long logs abridged. Empty if it is too long for a reply.
function entry.abridged(self, now)
  local parts = { pack(HEADER, VERSION, self.at) }
  for _, slot in ipairs(self.slots) do
    local bytes = slot.bytes
    if string.byte(bytes, 5) == SLIDING_LOG then
      local quota, position = stored_quota(bytes)
      local log = sliding_log.decode(quota, sub(bytes, position, -8))
      sliding_log.abridge(quota, log, now)
      local full = pack('<I7', sliding_log.full_at(quota, log))
      bytes = sub(bytes, 1, position - 1) .. sliding_log.encode(quota, log) .. full
    end
    parts[#parts + 1] = with_length(bytes)
  end
  local bytes = table.concat(parts)
  return #bytes <= MOST_EXPLAINED and bytes or ''
end

-- The state of a counter under the quota that is asked.
function entry.state_for(self, counter, now)
  local slot = entry.slot(self, counter, now)
  if not slot then
    return ALGORITHMS[counter.quota.kind].fresh(counter.quota, now)
  elseif slot.quota == counter.quota or counts_like(slot.quota, counter.quota) then
    return slot.state
  end
  return convert.state(slot.state, slot.quota, counter.quota, now)
end

-- Microseconds for which a charge's limit is blocked for the client's strikes.
function entry.blocked(self, charge, now)
  local strikes = charge.strikes
  return strikes and bucket.until_paid(strikes.quota, entry.state_for(self, strikes, now), now) or 0
end

-- Judges so many units of a charge.
function entry.judge(self, charge, units, now)
  local is_report = is_report(charge)
  if has(charge.flags, FORCED) or units == 0 and not is_report then
    return ADMIT, 0
  elseif is_report then
    units = has(charge.flags, REPORTED) and 1 or 0
  end
  local state = entry.state_for(self, charge, now)
  local verdict, micros = judge(charge.quota, state, now, units, charge.max_wait, has(charge.flags, QUEUES))
  if is_report and verdict == ADMIT then
    -- A report makes no request wait.
    micros = 0
  end
  if verdict ~= NEVER then
    local blocked = entry.blocked(self, charge, now)
    if blocked > 0 then
      return REFUSE, verdict == REFUSE and max(micros, blocked) or blocked
    end
  end
  return verdict, micros
end

-- Returns the units that a charge's limit has left, less than 0 for a debt, and microseconds until nothing is used. A
-- blocked client has none left.
function entry.left(self, charge, now)
  local state = entry.state_for(self, charge, now)
  local reset = saturating_sub(ALGORITHMS[charge.quota.kind].full_at(charge.quota, state), now)
  local balance = ALGORITHMS[charge.quota.kind].balance(charge.quota, state, now)
  local blocked = entry.blocked(self, charge, now)
  if blocked > 0 then
    return min(balance, 0), max(reset, blocked)
  end
  return balance, reset
end

-- Returns whether a refused request has to convert a counter: it is stored under another quota, and some of it is used
-- by the new one.
function entry.needs_conversion(self, counter, now)
  local slot, quota = entry.slot(self, counter, now), counter.quota
  if not slot or slot.quota == quota or counts_like(slot.quota, quota) then
    return false
  end
  return ALGORITHMS[quota.kind].full_at(quota, entry.state_for(self, counter, now)) > now
end

-- Returns whether a charge that was taken at an instant may be refunded. Its counter must be stored, and counted by the
-- same quota or in the same windows. A turn in a queue must be the last one that was given.
function entry.may_refund(self, charge, taken_at, now)
  local slot = entry.slot(self, charge, now)
  if not slot or not (counts_like(slot.quota, charge.quota) or has_windows_of(slot.quota, charge.quota)) then
    return false
  end
  -- A refund has the end of its turn in the place of the longest wait.
  return not has(charge.flags, QUEUES) or slot.full_at <= taken_at + charge.max_wait
end

-- Changes the state of a counter at `now`, in its place. Returns what the change does.
function entry.edit(self, counter, now, change, units, argument)
  local quota, slot = counter.quota, self.slot_of[counter.id]
  local state = entry.state_for(self, counter, now)
  ALGORITHMS[quota.kind].advance(quota, state, now)
  local result = change and change(quota, state, now, units, argument)
  if not slot then
    slot = { id = counter.id }
    self.slots[#self.slots + 1], self.slot_of[counter.id] = slot, slot
  end
  slot.quota, slot.state, slot.full_at = quota, state, ALGORITHMS[quota.kind].full_at(quota, state)
  local head = counter.head
  if quota.kind == BUCKET and state.marks then
    head = sub(head, 1, 4) .. string.char(BUCKET + WATCHED) .. sub(head, 6)
  end
  slot.bytes = head .. ALGORITHMS[quota.kind].encode(quota, state) .. pack('<I7', slot.full_at)
  self.is_changed = true
  return result
end

-- Removes the slot of a number.
function entry.forget(self, id)
  self.is_changed = true
  if self.slot_of[id] then
    -- Dropped when the change ends.
    self.slot_of[id].full_at, self.slot_of[id] = 0, nil
  end
end

-- Ends a change at `now`: drops the slots of which nothing is used any more. Returns when nothing of the entry is.
function entry.settle(self, now)
  local slots, longest = {}, 0
  for _, slot in ipairs(self.slots) do
    if slot.full_at > now then
      slots[#slots + 1] = slot
      longest = max(longest, slot.full_at)
    else
      self.slot_of[slot.id] = nil
    end
  end
  self.at, self.slots = now, slots
  return longest
end

