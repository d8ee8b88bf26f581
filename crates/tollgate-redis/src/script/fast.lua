-- The short way: checks of plain buckets (no queue, no patience, refusals not counted, every cost above 0 and within its
-- capacity), at most four to a subject, on subjects that hold the states of just these limits, or nothing.
--
-- It equals the long way: `bucket.refilled`, `judge` and `take` for each charge in turn, and `subject.advance`, which
-- here forgets nobody, because every limit is charged. What a client has left is worked out by the asker, from the
-- state. No tables are made here and no functions: this is where a busy server spends its time.
local ats, used, arguments = {}, {}, {}
local TAKEN, REFUSED = '\0', '\1'

-- Prepares a plain template: the charges of each subject, one after the other, as columns.
local function prepare(template)
  local parts, id, grains, full, refill = {}, {}, {}, {}, {}
  for j, charge in ipairs(template.charges) do
    local quota = charge.quota
    id[j], refill[j] = quota.id, quota.refill
    grains[j], full[j] = charge.cost * quota.grain, quota.capacity * quota.grain
    local part = parts[charge.subject]
    if not part then
      part = { first = j, format = '<I7', width = 7 }
      parts[charge.subject] = part
    end
    part.last, part.format, part.width = j, part.format .. 'I5I7', part.width + 12
  end
  template.parts, template.id, template.grains = parts, id, grains
  template.full, template.refill = full, refill
end

-- Reads what one subject has used of each limit, as of its instant. Answers with that, or with nothing if the state is
-- not one of just these limits in this order.
local function read_plain(state, part, id)
  if #state ~= part.width then
    return nil
  end
  local first, last = part.first, part.last
  local at, id1, used1, id2, used2, id3, used3, id4, used4 = unpack_from(part.format, state)
  if id1 ~= id[first] then
    return nil
  end
  used[first] = used1
  if first < last then
    if id2 ~= id[first + 1] then
      return nil
    end
    used[first + 1] = used2
    if first + 1 < last then
      if id3 ~= id[first + 2] then
        return nil
      end
      used[first + 2] = used3
      if first + 2 < last then
        if id4 ~= id[first + 3] then
          return nil
        end
        used[first + 3] = used4
      end
    end
  end
  return at
end

-- The state of a subject as of `now`, with what `used` says.
local function write_plain(part, id, now)
  local last = 0
  for j = part.first, part.last do
    arguments[last + 1], arguments[last + 2] = id[j], used[j]
    last = last + 2
  end
  return pack(part.format, now, unpack(arguments, 1, last))
end

-- Decides on the subjects at these positions. Answers with the packed reply, or with nothing if it takes the long way.
local function decide_plain(template, counted, now)
  local parts, id, refill = template.parts, template.id, template.refill
  for p = 1, #parts do
    local part, state = parts[p], states[counted[p]]
    local at = 0
    if state then
      at = read_plain(state, part, id)
      if not at then
        return nil
      end
    else
      for j = part.first, part.last do
        used[j] = 0
      end
    end
    ats[p] = at
    if at > now then
      now = at
    end
  end

  local grains, full, fits = template.grains, template.full, true
  for p = 1, #parts do
    local part, elapsed = parts[p], now - ats[p]
    for j = part.first, part.last do
      local rest = used[j] - elapsed * refill[j]
      if rest < 0 then
        rest = 0
      end
      used[j] = rest
      fits = fits and rest + grains[j] <= full[j]
    end
  end

  local reply = fits and TAKEN or REFUSED
  local room = border - now
  for p = 1, #parts do
    local part = parts[p]
    if fits then
      local whole = now
      for j = part.first, part.last do
        local taken = used[j] + grains[j]
        used[j] = taken
        -- Whole after the border? Multiplied out, which is as good and quicker than a quotient rounded up.
        if taken > room * refill[j] then
          whole = max(whole, now + div_ceil(taken, refill[j]))
        end
      end
      local state = write_plain(part, id, now)
      keep(counted[p], state, whole)
      reply = reply .. state
    else
      reply = reply .. write_plain(part, id, now)
    end
  end
  return reply
end

