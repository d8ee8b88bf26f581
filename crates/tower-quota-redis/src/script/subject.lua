-- Everything remembered of one key: the state of each limit that counts it, all as of one instant.
--
-- Stored as u56 instant, then slot after slot: the number of the quota that counted it (40 bits, the lowest two of them
-- the kind of state) and the numbers of its state, u56 each. A log is u32 its length, u56 its base, and its entries.
local subject = {}

-- What a slot's state is made of, in order.
local LAYOUT = {
  [BUCKET] = { format = '<I7', 'used' },
  [FIXED_WINDOW] = { format = '<I7I7', 'start', 'count' },
  [SLIDING_WINDOW] = { format = '<I7I7I7', 'start', 'before', 'count' },
}

-- The quota of a number, be it one of the request's or one of the past; nothing if it was forgotten.
local quota_of = {}
for _, quota in ipairs(quotas) do
  quota_of[quota.id] = quota
end

function subject.quota(id)
  local quota = quota_of[id]
  if quota == nil then
    local numbers = redis.call('HGET', KEYS[1], pack('<I5', id))
    quota = numbers and read_quota(numbers)
    if quota then
      quota.id = id
    end
    quota_of[id] = quota
  end
  return quota
end

function subject.read_state(kind, stored, position)
  local state = {}
  if kind == SLIDING_LOG then
    local length
    length, state.base, position = unpack_from('<I4I7', stored, position)
    if position + length - 1 > #stored then
      error('a log that was cut off')
    end
    state.entries = string.sub(stored, position, position + length - 1)
    return state, position + length
  end
  local layout = LAYOUT[kind]
  local values = { unpack_from(layout.format, stored, position) }
  for i, name in ipairs(layout) do
    state[name] = values[i]
  end
  return state, values[#values]
end

-- `slots` are in the order of their last change, false where one was; `place` has each limit's position among them, so
-- that a request of many limits takes no longer for each.
function subject.add(self, slot)
  self.slots[#self.slots + 1] = slot
  self.place[slot.limit] = #self.slots
end

function subject.slot(self, limit)
  local place = self.place[limit]
  return place and self.slots[place]
end

function subject.is_empty(self)
  return next(self.place) == nil
end

function subject.load(stored)
  local loaded = { has_changed = false, at = 0, slots = {}, place = {} }
  if not stored then
    return loaded
  end
  local position
  loaded.at, position = unpack_from('<I7', stored)
  while position <= #stored do
    local id, state
    id, position = unpack_from('<I5', stored, position)
    state, position = subject.read_state(id % 4, stored, position)
    local quota = subject.quota(id)
    -- A quota that nobody remembers has not been asked for in more than a year.
    if quota then
      subject.add(loaded, { limit = quota.limit, quota = quota, state = state })
    end
  end
  return loaded
end

-- The stored form; false for one with nothing left to remember, which is the same as one that was never seen.
function subject.stored(self)
  if subject.is_empty(self) then
    return false
  end
  local parts = { pack('<I7', self.at) }
  for _, slot in ipairs(self.slots) do
    if slot then
      local state = slot.state
      parts[#parts + 1] = pack('<I5', slot.quota.id)
      if slot.quota.kind == SLIDING_LOG then
        parts[#parts + 1] = pack('<I4I7', #state.entries, state.base)
        parts[#parts + 1] = state.entries
      else
        for _, name in ipairs(LAYOUT[slot.quota.kind]) do
          parts[#parts + 1] = pack('<I7', state[name])
        end
      end
    end
  end
  return table.concat(parts)
end

-- Microseconds until every limit is whole again, if nothing else is charged.
function subject.whole_after(self)
  local longest = 0
  for _, slot in ipairs(self.slots) do
    if slot then
      local _, reset = left(slot.quota, slot.state, self.at, self.at)
      longest = max(longest, reset)
    end
  end
  return longest
end

-- The state a charge is decided on, and the instant it is as of.
function subject.state_for(self, charge, now)
  local slot = subject.slot(self, charge.limit)
  if not slot then
    return fresh(charge.quota, now), now
  elseif slot.quota.id == charge.quota.id then
    return slot.state, self.at
  end
  return convert.state(slot.state, slot.quota, charge.quota, self.at, now), now
end

-- Microseconds for which a charge's limit is closed to the client for his strikes.
function subject.blocked(self, charge, now)
  local strikes = charge.strikes
  local state, from = subject.state_for(self, strikes, now)
  return bucket.until_paid(strikes.quota, state, from, now)
end

-- What a charge's limit says of this many units.
function subject.judge(self, charge, units, now)
  local state, from = subject.state_for(self, charge, now)
  local verdict, micros = judge(charge.quota, state, from, now, units, charge.patience, has(charge.flags, QUEUES))
  if charge.strikes and units > 0 and verdict ~= NEVER then
    local blocked = subject.blocked(self, charge, now)
    if blocked > 0 then
      return REFUSE, verdict == REFUSE and max(micros, blocked) or blocked
    end
  end
  return verdict, micros
end

-- Whole units that a charge's limit has left, and microseconds until all are back. It has none while the client is
-- blocked.
function subject.left(self, charge, now)
  local state, from = subject.state_for(self, charge, now)
  local remaining, reset = left(charge.quota, state, from, now)
  if charge.strikes then
    local blocked = subject.blocked(self, charge, now)
    if blocked > 0 then
      return 0, max(reset, blocked)
    end
  end
  return remaining, reset
end

-- Whether a charge's limit was counted by another quota.
function subject.counts_otherwise(self, charge)
  local slot = subject.slot(self, charge.limit)
  return slot and slot.quota.id ~= charge.quota.id
end

-- Moves every limit to `now` and forgets those that are whole.
function subject.advance(self, now)
  self.has_changed = true
  if self.at == now then
    -- Nothing has passed, and nobody who is whole is kept.
    return
  end
  local slots, from = self.slots, self.at
  self.at, self.slots, self.place = now, {}, {}
  for _, slot in ipairs(slots) do
    advance(slot.quota, slot.state, from, now)
    local _, reset = left(slot.quota, slot.state, now, now)
    if reset > 0 then
      subject.add(self, slot)
    end
  end
end

function subject.forget(self, charge)
  local place = self.place[charge.limit]
  if place then
    self.slots[place], self.place[charge.limit] = false, nil
  end
end

-- Changes the state of a charge's limit, in a subject that is as of `now`.
function subject.edit(self, charge, now, change, argument, units)
  local state = subject.state_for(self, charge, now)
  change(charge.quota, state, argument, units)
  subject.forget(self, charge)
  local _, reset = left(charge.quota, state, now, now)
  if reset > 0 then
    subject.add(self, { limit = charge.limit, quota = charge.quota, state = state })
  end
end

