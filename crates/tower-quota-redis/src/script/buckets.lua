-- The first path: plain decisions, on entries with buckets of the limits asked, in any order, beside any other slots.
-- Charges may be refundable, and buckets may have marks.
--
-- It equals the model: convert, judge and take for each charge in turn, then settle. No functions and few tables are
-- made for a decision: this is where a busy server spends its time. Everything else is left to the model: a stored
-- window of a limit asked, an instant beyond the border, bytes that make no sense.

-- Prepares the conversion from an earlier quota to the one asked. `digits` are those of the new grain to a base at which
-- all products stay below 2^53. There is one digit, unless both grains are long.
local function conversion(old_capacity, old_grain, new)
  local full, digits, rest = old_capacity * old_grain, {}, new.grain
  if full > 2 ^ 50 then
    error('numbers that no quota has')
  end
  local base = div(2 ^ 52, old_grain)
  repeat
    table.insert(digits, 1, rest % base)
    rest = div(rest, base)
  until rest == 0
  return {
    full = full,
    grain = old_grain,
    base = base,
    digits = digits,
    new_full = new.capacity * new.grain,
    new_grain = new.grain,
  }
end

-- Returns the grains used under the quota asked. What is left stays left, up to the new capacity, and a debt stays a
-- debt. A fraction of a grain counts against the client.
local function converted_used(used, numbers)
  local left, old_grain, base, digits = numbers.full - used, numbers.grain, numbers.base, numbers.digits
  local amount = left < 0 and -left or left
  local rest = amount % old_grain
  local units, part, over = (amount - rest) / old_grain, 0, 0
  -- part + over / old_grain = rest * new_grain / old_grain
  for i = 1, #digits do
    over = over * base + rest * digits[i]
    local remainder = over % old_grain
    part, over = part * base + (over - remainder) / old_grain, remainder
  end
  local full, grain = numbers.new_full, numbers.new_grain
  if left >= 0 then
    local now_used = full - units * grain - part
    return now_used > 0 and now_used or 0
  elseif units >= div(MOST_USED - full, grain) then
    return MOST_USED
  elseif over > 0 then
    part = part + 1
  end
  return full + units * grain + part
end

-- Stands for the earlier quota of a limit while none is known: no entry has room for it.
local NO_QUOTA = { width = math.huge, head = false }

-- Returns the earlier quota by which a limit was counted in a slot, and what converting from it takes; nothing if it is
-- no sound bucket.
local function earlier_quota(limit, state, position, next)
  if string.byte(state, position + 5) ~= BUCKET then
    return nil
  end
  local capacity, grain, refill, behind
  capacity, behind = short(state, position + 6)
  grain, behind = short(state, behind)
  refill, behind = short(state, behind)
  if capacity * grain * refill == 0 or next - behind ~= (refill > 1 and 14 or 7) then
    return nil
  end
  local head, earlier = sub(state, position, behind - 1), conversion(capacity, grain, limit)
  earlier.head, earlier.width, earlier.refill, earlier.room = head, next - position, refill, limit.room
  earlier.format = '<c' .. #head .. (refill > 1 and 'I7I7' or 'I7')
  return earlier
end

-- Returns the first bytes of a limit's slot where the bucket has marks, without the length, which depends on them.
local function watched_head(limit)
  if not limit.watched then
    limit.watched = sub(limit.head, 2, 5) .. string.char(BUCKET + WATCHED) .. sub(limit.head, 7)
  end
  return limit.watched
end

-- Sets the marks of a limit's bucket.
local function set_marks(template, part, k, of_bucket)
  local marks = template.marks
  if not part.is_marked then
    -- Those of another client.
    for j = part.first, part.last do
      marks[j] = nil
    end
    part.is_marked, part.is_special = true, true
  end
  marks[k] = of_bucket
end

-- Notes what is used of a bucket just before and after it is charged, if it has marks or the charge asks for one.
local function note(template, part, k, before, after, now)
  local marks = part.is_marked and template.marks[k]
  if marks then
    note_low(marks, before)
  end
  if template.limits[k].watches then
    if not marks then
      marks = {}
      set_marks(template, part, k, marks)
    end
    add_mark(marks, now, after)
  end
end

-- Prepares a template: `limits`, one for each charge, and a part for each of its clients.
--
--   head, width, format  of a limit's slot as the quota asked counts it: its bytes up to the state, and all of them
--   cost, room           in grains: what is asked, and what may be used before that
--   earlier              of the template, worked on here: for each limit the earlier quota that was last met
--   values               of a part: an entry of just these slots, to be packed in its `format`
--   watches              whether it is refundable; of a part: whether one of its charges is
--   used, marks          of the template, worked on here: the grains used of each limit, and the marks of those that
--                        have some
local function prepare(template)
  local limits, earlier, parts, part, position = {}, {}, {}, nil, template.start
  for k = 1, template.charge_count do
    local client, flags, cost, _, id, _, _, capacity, grain, refill, _, head, behind =
      unpack_from(CHARGE, request, position)
    position = behind
    if not parts[client] then
      part = { first = k, last = k, index = {}, format = HEADER, values = { VERSION, 0 }, is_special = true }
      parts[client] = part
    end
    local width, format = #head + 8, 'c' .. #head + 1 .. 'I7'
    if refill > 1 then
      width, format = width + 7, format .. 'I7'
    end
    head = string.char(width - 1) .. head
    limits[k] = {
      head = head,
      width = width,
      format = '<' .. format,
      cost = cost * grain,
      room = (capacity - cost) * grain,
      capacity = capacity,
      grain = grain,
      refill = refill,
      watches = bit.band(flags, REFUNDABLE) ~= 0,
    }
    earlier[k] = NO_QUOTA
    part.last, part.index[id], part.format = k, k, part.format .. format
    part.watches = part.watches or limits[k].watches
    local values = part.values
    local count = #values
    values[count + 1], values[count + 2] = head, 0
    if refill > 1 then
      values[count + 3] = 0
    end
  end
  template.limits, template.earlier, template.parts = limits, earlier, parts
  template.used, template.marks = {}, {}
  template.reply = HEADER .. string.rep('I7', template.charge_count)
  return parts
end

-- Returns the bytes of an entry from a position on if they are slots that are not asked for and still used.
local function tail(part, state, position, now)
  local index, next, beyond, longest = part.index, position, #state + 1, 0
  repeat
    local length, id = unpack_from('<BI4', state, next)
    next = next + 1 + length
    if length < 15 or length > 127 or next > beyond or index[id] then
      return false
    end
    local full = unpack_from('<I7', state, next - 7)
    if full <= now then
      return false
    elseif full > longest then
      longest = full
    end
  until next == beyond
  part.longest = longest
  return sub(state, position)
end

-- Reads the slots of an entry from a position on, in any order. Those of charges up to the one before `k` have
-- been read. Returns as `read`.
local function walk(template, part, state, position, k, now)
  local limits, used, index, size = template.limits, template.used, part.index, #state
  local pieces, found, longest = nil, nil, 0
  while position <= size do
    if position + 15 > size then
      return nil
    end
    local length, id = unpack_from('<BI4', state, position)
    local body = position + 1
    if length > 127 then
      length, body = varint(state, position)
      id = unpack_from('<I4', state, body)
    end
    local next = body + length
    if next > size + 1 or length < 15 then
      return nil
    end
    local asked, full = index[id], unpack_from('<I7', state, next - 7)
    if not asked then
      if full > now then
        pieces = pieces or {}
        pieces[#pieces + 1] = sub(state, position, next - 1)
        longest = max(longest, full)
      end
    elseif asked < k or found and found[asked] then
      -- The same limit twice.
      return nil
    else
      local limit, left = limits[asked], 0
      local head = limit.head
      -- A slot of which nothing is used any more is the same as none.
      if full > now then
        local counted, rest = limit, next - 14
        if sub(state, position, position + #head - 1) ~= head then
          head = watched_head(limit)
          if sub(state, body, body + #head - 1) == head then
            rest = body + #head
            local first = limit.refill > 1 and rest + 7 or rest
            set_marks(template, part, asked, unpack_marks(state, first, next - 7 - first))
          else
            counted = earlier_quota(limit, state, position, next)
            if not counted then
              return nil
            end
            template.earlier[asked] = counted
          end
        end
        left = (full - now) * counted.refill
        if counted.refill > 1 then
          left = left - unpack_from('<I7', state, rest)
        end
        if counted ~= limit then
          left, part.is_converted = converted_used(left, counted), true
          template.is_emptied = template.is_emptied or left == 0
        end
      end
      used[asked] = left
      if asked == k and not pieces then
        k = k + 1
      else
        pieces, found = pieces or {}, found or {}
        pieces[#pieces + 1], found[asked] = asked, true
      end
    end
    position = next
  end
  part.stored, part.pieces, part.found, part.longest = k - 1, pieces, found, longest
  local fits = true
  for j = part.first, part.last do
    if j >= k and not (found and found[j]) then
      used[j] = 0
    end
    fits = fits and used[j] <= limits[j].room
  end
  return fits
end

-- Reads what is used of each limit of a part from its client's entry. Returns whether its charges fit; nothing if the
-- model is needed. Sets:
--
--   stored   the charge up to which limits come first in the entry, in the order asked
--   pieces   what comes behind them: charges, and the bytes of slots that are not asked for and still used; or nothing
--   found    whether a charge is in `pieces`
--   tail     the bytes of slots that are not asked for and still used, where nothing else comes behind; or nothing
--   longest  when nothing is used of the slots in `pieces` or `tail`
--
-- They are set where they differ from what most clients have, which `is_special` says: it takes long to set a field.
local function read(template, part, state, now)
  local limits, used, fits, converts = template.limits, template.used, true, false
  local k, last, position, beyond = part.first, part.last, 9, #state + 1
  if part.is_special then
    part.is_special, part.pieces, part.found, part.is_marked = false, nil, nil, false
  end
  -- An entry was counted by the quotas asked, or by earlier ones while new ones are deployed. Most often all of it was
  -- counted by either, so the next slot is first taken for one of the same.
  local expected, others, misses = limits, template.earlier, 0
  repeat
    local from = k
    while k <= last do
      local counted = expected[k]
      local next = position + counted.width
      if next > beyond then
        break
      end
      local head, one, two = unpack_from(counted.format, state, position)
      if head ~= counted.head then
        break
      end
      local refill, left = counted.refill, nil
      if refill > 1 then
        left = (two - now) * refill - one
      else
        left = one - now
      end
      if left < 0 then
        left = 0
      elseif expected ~= limits and left > 0 then
        left, converts = converted_used(left, counted), true
        template.is_emptied = template.is_emptied or left == 0
      end
      if left > counted.room then
        fits = false
      end
      used[k] = left
      k, position = k + 1, next
    end
    misses = k > from and 0 or misses + 1
    expected, others = others, expected
  until k > last or position == beyond or misses == 2
  if part.is_converted ~= converts then
    part.is_converted = converts
  end
  part.stored, part.tail = k - 1, position < beyond and tail(part, state, position, now)
  if position < beyond and not part.tail then
    part.is_special = true
    return walk(template, part, state, position, k, now)
  end
  for j = k, last do
    used[j], fits = 0, fits and limits[j].room >= 0
  end
  return fits
end

-- Returns the slot of a charge's limit; nothing where nothing is used.
local function slot(template, part, k, now)
  local limit, used, marks = template.limits[k], template.used[k], part.is_marked and template.marks[k]
  local refill = limit.refill
  local rest = -used % refill
  local full = now + (used + rest) / refill
  if used == 0 then
    return ''
  elseif marks then
    local head = watched_head(limit)
    if refill > 1 then
      head = head .. pack('<I7', rest)
    end
    return with_length(head .. pack_marks(marks) .. pack('<I7', full))
  elseif refill == 1 then
    return pack(limit.format, limit.head, full)
  end
  return pack(limit.format, limit.head, rest, full)
end

-- Returns the entry of a part whose slots are in another order than asked, or have marks, or where a new one stands
-- behind others; false if nothing is left.
-- Limits that were not stored are added if the request `fits`.
local function compose(template, part, now, fits)
  local limits, pieces, found = template.limits, part.pieces, part.found
  local slots, count = { pack(HEADER, VERSION, now) }, 1
  for k = part.first, part.stored do
    count = count + 1
    slots[count] = slot(template, part, k, now)
  end
  for i = 1, pieces and #pieces or 0 do
    local piece = pieces[i]
    count = count + 1
    slots[count] = limits[piece] and slot(template, part, piece, now) or piece
  end
  if part.tail then
    count = count + 1
    slots[count] = part.tail
  end
  for k = part.stored + 1, fits and part.last or 0 do
    if not (found and found[k]) then
      count = count + 1
      slots[count] = slot(template, part, k, now)
    end
  end
  local state = table.concat(slots)
  return #state > 8 and state
end

-- Writes the entry of a part's client.
local function write(template, part, client, now, fits)
  local limits, used, pieces, behind = template.limits, template.used, part.pieces, part.tail
  local longest = (pieces or behind) and part.longest or 0
  local values, field, state = part.values, 4, nil
  local has_notes = part.is_marked or part.watches
  values[2] = now
  for k = part.first, part.last do
    local limit, left = limits[k], used[k]
    if fits then
      left = left + limit.cost
      used[k] = left
      if has_notes then
        note(template, part, k, left - limit.cost, left, now)
      end
    end
    local refill, full = limit.refill, now + left
    if refill > 1 then
      local rest = -left % refill
      full = now + (left + rest) / refill
      values[field] = rest
      field = field + 1
    end
    values[field] = full
    field = field + 2
    if full > longest then
      longest = full
    end
  end
  if fits and not pieces and not part.is_marked and (not behind or part.stored == part.last) then
    state = pack(part.format, unpack(values))
    if behind then
      state = state .. behind
    end
  else
    state = compose(template, part, now, fits)
  end
  states[client], full_at[client] = state, longest
end

-- Decides the decision whose template is at a place in `decisions`, followed by its clients. Returns its reply; nothing
-- if the model is needed.
--
-- All clients without an entry get the same result from one template, so it is computed once.
local function decide_buckets(template, place)
  local parts, now, are_new = template.parts or prepare(template), clock, true
  local count = #parts
  for p = 1, count do
    local state = states[decisions[place + p]]
    if state then
      are_new = false
      local version, at = unpack_from(HEADER, state)
      if version ~= VERSION or at > border then
        return nil
      elseif at > now then
        now = at
      end
    end
  end
  if are_new and template.reply_to_new then
    for p = 1, count do
      local part = parts[p]
      if part.new_state then
        local client = decisions[place + p]
        states[client], full_at[client] = part.new_state, part.new_full
      end
    end
    return template.reply_to_new
  end
  local fits = true
  template.is_emptied = false
  for p = 1, count do
    local part_fits = read(template, parts[p], states[decisions[place + p]] or '', now)
    if part_fits == nil then
      return nil
    end
    fits = fits and part_fits
  end
  if template.is_emptied and not fits then
    -- A refusal keeps the earlier quota of a bucket that is full by the one asked.
    return nil
  end
  for p = 1, count do
    local part = parts[p]
    if fits or part.is_converted then
      write(template, part, decisions[place + p], now, fits)
    end
  end
  local reply = pack(template.reply, fits and TAKEN or REFUSED, now, unpack(template.used))
  if are_new then
    template.reply_to_new = reply
    for p = 1, fits and count or 0 do
      local part, client = parts[p], decisions[place + p]
      part.new_state, part.new_full = states[client], full_at[client]
      lifetimes[part.new_full] = lifetime_until(part.new_full)
    end
  end
  return reply
end

