-- The fast path for plain decisions about buckets. Creates few tables and calls few functions, because a busy server
-- spends most time here. An error leaves the decision to the model.

-- Prepares a template. Every client has a part, with the limits from `first` to `last`. Every decision overwrites
-- `used` and `marks` of the template, and `values` of a part.
local function prepare(template)
  local parts, limits = {}, {}
  for k, charge in ipairs(template.charges) do
    local part = parts[charge.client] or { first = k, index = {}, format = HEADER, values = { VERSION, 0 } }
    local grain, values, is_long = charge.grain, part.values, charge.pace > 1
    local width, from = #charge.head + (is_long and 15 or 8), #values + 1
    local head = char(width - 1) .. charge.head
    local format = 'c' .. #head .. (is_long and 'I7I7' or 'I7')
    values[from], values[from + 1], values[from + 2] = head, 0, is_long and 0 or nil
    limits[k] = {
      width = width,
      head = head,
      format = '<' .. format,
      quota = charge,
      pace = charge.pace,
      -- In grains.
      cost = charge.cost * grain,
      room = (charge.capacity - charge.cost) * grain,
      watches = has(charge.flags, REFUNDABLE),
      -- The positions in `values`.
      from = from,
      to = #values,
    }
    parts[charge.client] = part
    part.last, part.index[charge.id], part.format = k, k, part.format .. format
    part.watches = part.watches or limits[k].watches
  end
  template.parts, template.limits, template.used, template.marks = parts, limits, {}, {}
  template.reply = HEADER .. rep('I7', #limits)
  return parts
end

-- Reads the slots of an entry in any order, from a position on. The caller has read the limits before `k`. Sets
-- `pieces` of the part to the slots in stored order, as the position of a limit or the bytes of an unknown slot.
local function scan(template, part, state, position, k, now)
  local limits, used, marks, pieces, is_found = template.limits, template.used, template.marks, {}, {}
  part.longest = 0
  for j = part.first, part.last do
    marks[j], is_found[j] = nil, j < k
    if j < k then
      pieces[#pieces + 1] = j
    end
  end
  while position <= #state do
    local length, body = varint(state, position)
    local behind = body + length
    local id, kind = unpack_from('<I4B', state, body)
    local full = unpack_from('<I7', state, behind - 7)
    local asked = part.index[id]
    if length < 15 or is_found[asked] then
      error('an entry that makes no sense')
    elseif asked then
      is_found[asked], pieces[#pieces + 1] = true, asked
      -- A full bucket is the same as no bucket.
      if full > now then
        local limit, numbers = limits[asked], sub(limits[asked].head, 7)
        local quota, rest = limit.quota, body + 5 + #numbers
        if kind % WATCHED ~= TOKEN_BUCKET then
          error('a state for the model')
        elseif sub(state, body + 5, rest - 1) ~= numbers then
          quota, rest = stored_quota(state, body + 4)
          template.converted = (template.converted or 0) + 2 ^ (asked - 1)
        end
        used[asked] = (full - now) * quota.pace
        if quota.pace > 1 then
          used[asked] = used[asked] - unpack_from('<I7', state, rest)
          rest = rest + 7
        end
        if quota ~= limit.quota then
          used[asked] = converted_used(used[asked], quota, limit.quota)
        elseif kind == TOKEN_BUCKET + WATCHED then
          marks[asked] = unpack_marks(state, rest, behind - 8)
        end
      end
    elseif full > now then
      pieces[#pieces + 1] = sub(state, position, behind - 1)
      part.longest = max(part.longest, full)
    end
    position = behind
  end
  for j = part.first, part.last do
    if not is_found[j] then
      pieces[#pieces + 1] = j
    end
  end
  part.pieces = pieces
end

-- Reads the used grains of the limits of a part. Returns whether the charges fit.
local function read(template, part, state, now)
  local limits, used, fits = template.limits, template.used, true
  local k, last, position, beyond = part.first, part.last, 9, #state + 1
  -- Most entries have the slots in the order of the limits.
  while k <= last do
    local limit = limits[k]
    local behind = position + limit.width
    if behind > beyond then
      break
    end
    local head, one, two = unpack_from(limit.format, state, position)
    if head ~= limit.head then
      break
    end
    local left = one - now
    if limit.pace > 1 then
      left = (two - now) * limit.pace - one
    end
    used[k] = left > 0 and left or 0
    k, position = k + 1, behind
  end
  for j = k, last do
    used[j] = 0
  end
  part.pieces = nil
  if position < beyond or part.watches then
    scan(template, part, state, position, k, now)
  end
  for j = part.first, last do
    fits = fits and used[j] <= limits[j].room
  end
  return fits
end

-- Takes the charges of a part, and writes the entry of the client.
local function take(template, part, client, now)
  local used, marks, values, pieces = template.used, template.marks, part.values, part.pieces
  local longest, slots = pieces and part.longest or 0, pieces and {}
  values[2] = now
  for k = part.first, part.last do
    local limit, before = template.limits[k], used[k]
    local after, to = before + limit.cost, limit.to
    local full = now + after
    if limit.pace > 1 then
      local rest = -after % limit.pace
      full = now + (after + rest) / limit.pace
      values[to - 1] = rest
    end
    used[k], values[to] = after, full
    if full > longest then
      longest = full
    end
    if pieces then
      slots[k] = pack(limit.format, unpack(values, limit.from, to))
      note_low(marks[k], before)
      if limit.watches then
        marks[k] = marks[k] or {}
        add_mark(marks[k], now, after)
      end
      if marks[k] then
        slots[k] = with_length(with_marks(sub(slots[k], 2), marks[k]))
      end
    end
  end
  full_at[client] = longest
  if not pieces then
    states[client] = pack(part.format, unpack(values))
    return
  end
  for i, piece in ipairs(pieces) do
    pieces[i] = slots[piece] or piece
  end
  states[client] = pack(HEADER, VERSION, now) .. concat(pieces)
end

-- Returns the reply to a decision. `decisions` has the template at `place`, followed by the clients.
local function decide_buckets(template, place)
  local parts, now, are_new, fits = template.parts or prepare(template), clock, true, true
  for p = 1, #parts do
    local state = states[decisions[place + p]]
    if state then
      are_new = false
      local version, at = unpack_from(HEADER, state)
      if version ~= VERSION or at > border then
        error('an entry for the model')
      elseif at > now then
        now = at
      end
    end
  end
  -- All new clients get the same result from one template.
  if are_new and template.reply_to_new then
    for p = 1, #parts do
      local client = decisions[place + p]
      states[client], full_at[client] = parts[p].new_state, parts[p].new_full
    end
    return template.reply_to_new
  end
  template.converted = nil
  for p = 1, #parts do
    fits = read(template, parts[p], states[decisions[place + p]] or '', now) and fits
  end
  if template.converted and not fits then
    error('a refusal that converts a bucket')
  end
  for p = 1, fits and #parts or 0 do
    take(template, parts[p], decisions[place + p], now)
  end
  local reply = pack(template.reply, fits and TAKEN or REFUSED, now, unpack(template.used))
  if are_new and fits then
    template.reply_to_new = reply
    for p = 1, #parts do
      local part, client = parts[p], decisions[place + p]
      part.new_state, part.new_full = states[client], full_at[client]
    end
  elseif template.converted then
    return pack('<BI4', CONVERTED, template.converted) .. reply
  end
  return reply
end

