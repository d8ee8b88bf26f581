-- The short way: checks of plain buckets (no queue, no patience, refusals not counted, every cost above 0 and within its
-- capacity), at most four to a subject, on subjects that hold the states of just these limits, or nothing.
--
-- It equals the long way: `bucket.refilled`, `judge` and `take` for each charge in turn, and `subject.advance`, which
-- here forgets nobody, because every limit is charged. What a client has left is worked out by the asker, from the
-- state. No tables are made for a decision, and no functions: this is where a busy server spends its time.
local TAKEN, REFUSED, DECIDED, SENSELESS = '\0', '\1', '\2', '\3'
local FORMATS = { '<I7I5I7', '<I7I5I7I5I7', '<I7I5I7I5I7I5I7', '<I7I5I7I5I7I5I7I5I7' }

-- The parts of a plain template, one for each subject:
--   slots   what a state has after its instant: quota and grains used, of each charge; the latter are worked on here
--   limits  cost, capacity and refill of each charge, in grains
local function parts_of(template)
  local parts, part, count = {}, nil, 0
  local position = template.start
  for _ = 1, template.charge_count do
    local definition, subject, cost = unpack_from('<HHI7', request, position)
    position = position + CHARGE
    local id, _, _, _, capacity, grain, refill =
      unpack_from('<I5I4BBI7I7I7', request, definitions_start + (definition - 1) * DEFINITION)
    if parts[subject] then
      count = count + 1
      local slots, limits = part.slots, part.limits
      slots[count * 2 - 1], slots[count * 2] = id, 0
      limits[count * 3 - 2], limits[count * 3 - 1], limits[count * 3] = cost * grain, capacity * grain, refill
      part.count, part.format, part.width = count, FORMATS[count], 7 + 12 * count
    else
      count = 1
      part = {
        slots = { id, 0 },
        limits = { cost * grain, capacity * grain, refill },
        count = 1,
        format = FORMATS[1],
        width = 19,
        at = 0,
      }
      parts[subject] = part
    end
  end
  template.parts = parts
  return parts
end

-- Reads a subject's instant and what it has used of each limit. Answers whether its state is one of just these limits,
-- in this order.
local function read_plain(state, part)
  if #state ~= part.width then
    return false
  end
  local slots, count = part.slots, part.count
  local at, id1, used1, id2, used2, id3, used3, id4, used4 = unpack_from(part.format, state)
  if id1 ~= slots[1] then
    return false
  end
  part.at, slots[2] = at, used1
  if count > 1 then
    if id2 ~= slots[3] then
      return false
    end
    slots[4] = used2
    if count > 2 then
      if id3 ~= slots[5] then
        return false
      end
      slots[6] = used3
      if count > 3 then
        if id4 ~= slots[7] then
          return false
        end
        slots[8] = used4
      end
    end
  end
  return true
end

-- Decides on the subjects at these positions. Answers with the verdict and the packed states, or with nothing if it
-- takes the long way.
local function decide_plain(template, counted, now)
  local parts = template.parts or parts_of(template)
  for p = 1, #parts do
    local part, state = parts[p], states[counted[p]]
    if not state then
      part.at = 0
      for k = 2, part.count * 2, 2 do
        part.slots[k] = 0
      end
    elseif not read_plain(state, part) then
      return nil
    end
    if part.at > now then
      now = part.at
    end
  end

  local fits = true
  for p = 1, #parts do
    local part = parts[p]
    local slots, limits, elapsed = part.slots, part.limits, now - part.at
    local limit = 1
    for k = 2, part.count * 2, 2 do
      local used = slots[k] - elapsed * limits[limit + 2]
      if used < 0 then
        used = 0
      end
      slots[k] = used
      if used + limits[limit] > limits[limit + 1] then
        fits = false
      end
      limit = limit + 3
    end
  end

  local room, answer = border - now, nil
  for p = 1, #parts do
    local part = parts[p]
    local slots = part.slots
    local whole = now
    if fits then
      local limits, limit = part.limits, 1
      for k = 2, part.count * 2, 2 do
        local used, refill = slots[k] + limits[limit], limits[limit + 2]
        slots[k] = used
        -- Whole after the border? Multiplied out, which is as good and quicker than a quotient rounded up.
        if used > room * refill then
          whole = max(whole, now + div_ceil(used, refill))
        end
        limit = limit + 3
      end
    end
    local state = pack(part.format, now, unpack(slots))
    if fits then
      keep(counted[p], state, whole)
    end
    answer = answer and answer .. state or state
  end
  return fits and TAKEN or REFUSED, answer
end

