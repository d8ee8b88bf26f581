-- The short way: checks of plain buckets (no queue, no patience, refusals not counted, every cost above 0 and within its
-- capacity), at most four to a subject, on subjects that hold the states of just these limits, or nothing.
--
-- It equals the long way: `bucket.refilled`, `judge` and `take` for each charge in turn, and `subject.advance`, which
-- here forgets nobody, because every limit is charged. What a client has left is worked out by the asker, from the
-- state. No tables are made here and no functions: this is where a busy server spends its time.
local TAKEN, REFUSED, DECIDED, SENSELESS = '\0', '\1', '\2', '\3'
local FORMATS = { '<I7I5I7', '<I7I5I7I5I7', '<I7I5I7I5I7I5I7', '<I7I5I7I5I7I5I7I5I7' }
local ats, used = { 0, 0 }, { 0, 0, 0, 0 }

-- Lays out the charges of a plain template as columns, and its subjects' parts of them.
for i = 1, template_count do
  local template = templates[i]
  if template.is_plain then
    local parts, last_subject, first = {}, 1, 1
    local id, grains, full, refill = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
    for j = 1, template.charge_count do
      local definition, subject, cost = unpack_from('<HHI7', request, template.start + (j - 1) * 19)
      local number, _, _, _, capacity, grain, pace =
        unpack_from('<I5I4BBI7I7I7', request, definitions_start + (definition - 1) * DEFINITION)
      id[j], grains[j], full[j], refill[j] = number, cost * grain, capacity * grain, pace
      if subject ~= last_subject then
        last_subject, first = subject, j
      end
      local charges, part = j - first + 1, parts[subject]
      if not part then
        -- `slots`: what is packed after the instant; the numbers of the quotas stay, what is used changes.
        part = { first = first, slots = { 0, 0, 0, 0, 0, 0, 0, 0 } }
        parts[subject] = part
      end
      part.last, part.format, part.width = j, FORMATS[charges], 7 + 12 * charges
      part.slots[charges * 2 - 1] = number
    end
    template.parts, template.id, template.grains = parts, id, grains
    template.full, template.refill = full, refill
  end
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

-- The state of a subject as of `now`, with what `used` says and, of each limit, so many grains more.
local function write_plain(part, now, more)
  local slots, last = part.slots, 0
  for j = part.first, part.last do
    last = last + 2
    slots[last] = used[j] + (more and more[j] or 0)
  end
  return pack(part.format, now, unpack(slots, 1, last))
end

-- Decides on the subjects at these positions. Answers with the verdict and the packed states, or with nothing
-- if it takes the long way.
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

  if not fits then
    local answer = write_plain(parts[1], now)
    for p = 2, #parts do
      answer = answer .. write_plain(parts[p], now)
    end
    return REFUSED, answer
  end

  local room, answer = border - now, nil
  for p = 1, #parts do
    local part, whole = parts[p], now
    for j = part.first, part.last do
      -- Whole after the border? Multiplied out, which is as good and quicker than a quotient rounded up.
      local taken = used[j] + grains[j]
      if taken > room * refill[j] then
        whole = max(whole, now + div_ceil(taken, refill[j]))
      end
    end
    local state = write_plain(part, now, grains)
    keep(counted[p], state, whole)
    answer = answer and answer .. state or state
  end
  return TAKEN, answer
end

