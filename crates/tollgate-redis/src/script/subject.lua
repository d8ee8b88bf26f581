-- Everything remembered of one key: the state of each limit that counts it, all as of one instant.
local subject = {}

function subject.load(key)
  local stored = redis.call('GET', key)
  local loaded = { key = key, is_stored = stored ~= false, has_changed = false, at = 0, slots = {} }
  if not stored then
    return loaded
  end
  local fields = cmsgpack.unpack(stored)
  loaded.at = fields[1]
  local position = 2
  while position <= #fields do
    local slot = { limit = fields[position], quota = { kind = fields[position + 1] }, state = {} }
    local layout = LAYOUT[slot.quota.kind]
    position = position + 2
    for _, name in ipairs(layout.quota) do
      slot.quota[name] = fields[position]
      position = position + 1
    end
    for _, name in ipairs(layout.state) do
      slot.state[name] = fields[position]
      position = position + 1
    end
    loaded.slots[#loaded.slots + 1] = slot
  end
  return loaded
end

-- Microseconds until every limit is whole again, if nothing else is charged.
function subject.whole_after(self)
  local longest = 0
  for _, slot in ipairs(self.slots) do
    local _, reset = left(slot.quota, slot.state, self.at, self.at)
    longest = max(longest, reset)
  end
  return longest
end

-- Stores a subject until it is whole, and for `shortest` milliseconds at least. One with nothing left to remember is
-- the same as one that was never seen.
function subject.save(self, shortest)
  if #self.slots == 0 then
    if self.is_stored then
      redis.call('DEL', self.key)
    end
    return
  end
  local fields = { self.at }
  for _, slot in ipairs(self.slots) do
    local layout = LAYOUT[slot.quota.kind]
    fields[#fields + 1] = slot.limit
    fields[#fields + 1] = slot.quota.kind
    for _, name in ipairs(layout.quota) do
      fields[#fields + 1] = slot.quota[name]
    end
    for _, name in ipairs(layout.state) do
      fields[#fields + 1] = slot.state[name]
    end
  end
  -- No limit takes longer than 2^51 microseconds to be whole, so neither does a key: 71 years.
  local lifetime = max(div_ceil(subject.whole_after(self), 1000), shortest)
  redis.call('SET', self.key, cmsgpack.pack(fields), 'PX', string.format('%.0f', lifetime))
end

-- The state a charge is decided on, and the instant it is as of.
function subject.state_for(self, charge, now)
  for _, slot in ipairs(self.slots) do
    if slot.limit == charge.limit then
      if counts_like(slot.quota, charge.quota) then
        return slot.state, self.at
      end
      return convert.state(slot.state, slot.quota, charge.quota, self.at, now), now
    end
  end
  return fresh(charge.quota, now), now
end

function subject.judge(self, charge, now)
  local state, from = subject.state_for(self, charge, now)
  return judge(charge.quota, state, from, now, charge.cost, charge.patience)
end

function subject.left(self, charge, now)
  local state, from = subject.state_for(self, charge, now)
  return left(charge.quota, state, from, now)
end

-- Whether a charge's limit was counted by another quota.
function subject.counts_otherwise(self, charge)
  for _, slot in ipairs(self.slots) do
    if slot.limit == charge.limit then
      return not counts_like(slot.quota, charge.quota)
    end
  end
  return false
end

-- Moves every limit to `now` and forgets those that are whole.
function subject.advance(self, now)
  local kept = {}
  for _, slot in ipairs(self.slots) do
    advance(slot.quota, slot.state, self.at, now)
    local _, reset = left(slot.quota, slot.state, now, now)
    if reset > 0 then
      kept[#kept + 1] = slot
    end
  end
  self.at, self.slots, self.has_changed = now, kept, true
end

function subject.forget(self, charge)
  for position, slot in ipairs(self.slots) do
    if slot.limit == charge.limit then
      table.remove(self.slots, position)
      return
    end
  end
end

-- Changes the state of a charge's limit, in a subject that is as of `now`.
function subject.edit(self, charge, now, change, argument)
  local state = subject.state_for(self, charge, now)
  change(charge.quota, state, argument, charge.cost)
  subject.forget(self, charge)
  local _, reset = left(charge.quota, state, now, now)
  if reset > 0 then
    self.slots[#self.slots + 1] = { limit = charge.limit, quota = charge.quota, state = state }
  end
end

