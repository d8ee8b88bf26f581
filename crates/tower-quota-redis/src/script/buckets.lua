-- The first path: plain decisions, on entries with buckets of the limits asked, in any order, beside any other slots.
-- Charges may be refundable, and buckets may have marks.
--
-- It equals the model: convert, judge and take for each charge in turn, then settle. No functions and few tables are
-- made for a decision: this is where a busy server spends its time. Everything else is left to the model: a stored
-- window of a limit asked, an instant beyond the border, bytes that make no sense.

-- Products of two numbers below 2^26 are exact.
local FINEST = 2 ^ 26

-- Returns the numbers that converting from an old quota takes, as `bucket_used` in the model.
local function conversion_from(capacity, grain)
  local cut = div_ceil(grain, FINEST)
  return { capacity = capacity, grain = grain, cut = cut, parts = div_ceil(grain, cut) }
end

-- A fraction of a unit in grains of another size, rounded down.
local function fraction(rest, old, grain)
  if old.grain == grain then
    return rest
  end
  local parts = old.parts
  rest = (rest - rest % old.cut) / old.cut
  local finer = grain % parts
  return rest * ((grain - finer) / parts) + div(rest * finer, parts)
end

-- The grains used under another quota: what is left stays left, up to the new capacity, and a debt stays a debt.
local function converted_used(used, old, capacity, grain)
  local old_grain, full = old.grain, capacity * grain
  local left = old.capacity * old_grain - used
  local is_debt = left < 0
  if is_debt then
    left = -left
  end
  local rest = left % old_grain
  local units = (left - rest) / old_grain
  if units >= (is_debt and div(MOST_USED - full, grain) or capacity) then
    return is_debt and MOST_USED or 0
  end
  local begun = rest > 0 and fraction(rest, old, grain) or 0
  if not is_debt then
    return full - units * grain - begun
  elseif rest > 0 and old_grain ~= grain then
    begun = begun + 1
  end
  return full + units * grain + begun
end

-- The quotas of stored buckets, by the bytes of their slots up to the state.
local stored_quotas = {}

-- Returns the quota of the bucket in a slot; nothing if it is no sound bucket.
local function stored_bucket(state, position, next)
  local quota = stored_quotas[sub(state, position, next - 8)] or stored_quotas[sub(state, position, next - 15)]
  if quota then
    return quota
  elseif string.byte(state, position + 5) ~= BUCKET then
    return nil
  end
  local capacity, grain, refill, behind
  capacity, behind = short(state, position + 6)
  grain, behind = short(state, behind)
  refill, behind = short(state, behind)
  if capacity * grain * refill == 0 or next - behind ~= (refill > 1 and 14 or 7) then
    return nil
  end
  local head = sub(state, position, behind - 1)
  quota = conversion_from(capacity, grain)
  quota.refill, quota.head, quota.width = refill, head, next - position
  quota.format = '<c' .. #head .. (refill > 1 and 'I7I7' or 'I7')
  stored_quotas[head] = quota
  return quota
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
--   values               of a part: an entry of just these slots, to be packed in its `format`
--   watches              whether it is refundable; of a part: whether one of its charges is
--   used, marks          of the template, worked on here: the grains used of each limit, and the marks of those that
--                        have some
local function prepare(template)
  local limits, parts, part, position = {}, {}, nil, template.start
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
    part.last, part.index[id], part.format = k, k, part.format .. format
    part.watches = part.watches or limits[k].watches
    local values = part.values
    local count = #values
    values[count + 1], values[count + 2] = head, 0
    if refill > 1 then
      values[count + 3] = 0
    end
  end
  template.limits, template.parts, template.used, template.marks = limits, parts, {}, {}
  template.reply = HEADER .. string.rep('I7', template.charge_count)
  return parts
end

-- Reads the slots of an entry from a position on, in any order. Those of charges up to the one before `k` have
-- been read. Returns nothing if the model is needed.
local function walk(template, part, state, position, k, now)
  local limits, used, index, size = template.limits, template.used, part.index, #state
  local pieces, found
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
        if full > part.longest then
          part.longest = full
        end
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
            counted = stored_bucket(state, position, next)
          end
          if not counted then
            return nil
          end
        end
        left = (full - now) * counted.refill
        if counted.refill > 1 then
          left = left - unpack_from('<I7', state, rest)
        end
        if counted ~= limit then
          left = converted_used(left, counted, limit.capacity, limit.grain)
          limit.other, part.is_converted = counted, true
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
  part.stored, part.pieces, part.found = k - 1, pieces, found
  return true
end

-- Reads what is used of each limit of a part from its client's entry. Returns nothing if the model is needed. Sets:
--
--   stored   the charge up to which limits come first in the entry, in the order asked
--   pieces   what comes behind them: charges, and the bytes of slots that are not asked for and still used; or nothing
--   found    whether a charge is in `pieces`
--   longest  when nothing is used of the slots that are not asked for
--
-- They are set where they differ from what most clients have, which `is_special` says: it takes long to set a field.
local function read(template, part, state, now)
  local limits, used = template.limits, template.used
  local k, last, position, beyond = part.first, part.last, 9, #state + 1
  if part.is_special then
    part.is_special, part.pieces, part.found, part.longest = false, nil, nil, 0
    part.is_converted, part.is_marked = false, false
  end
  while k <= last do
    local limit = limits[k]
    local next = position + limit.width
    if next > beyond then
      break
    end
    local head, one, two = unpack_from(limit.format, state, position)
    local counted = limit
    if head ~= limit.head then
      -- By the other quota of a limit that has two, as while a new one is deployed?
      counted = limit.other
      if not counted or position + counted.width > beyond then
        break
      end
      head, one, two = unpack_from(counted.format, state, position)
      if head ~= counted.head then
        break
      end
      next = position + counted.width
    end
    local refill, left = counted.refill, nil
    if refill > 1 then
      left = (two - now) * refill - one
    else
      left = one - now
    end
    if left < 0 then
      left = 0
    elseif counted ~= limit and left > 0 then
      left = converted_used(left, counted, limit.capacity, limit.grain)
      part.is_converted, part.is_special = true, true
    end
    used[k] = left
    k, position = k + 1, next
  end
  part.stored = k - 1
  if position < beyond then
    part.is_special = true
    if not walk(template, part, state, position, k, now) then
      return nil
    end
  end
  for j = part.stored + 1, last do
    if not (part.found and part.found[j]) then
      used[j] = 0
    end
  end
  return true
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

-- Returns the entry of a part that has other slots than those asked, another order or marks; false if nothing is left.
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
  local limits, used, longest, pieces = template.limits, template.used, part.longest, part.pieces
  local values, field, state = part.values, 4, nil
  local has_notes = part.is_marked or part.watches
  values[2] = now
  for k = part.first, part.last do
    local limit, left, full = limits[k], used[k], nil
    local refill = limit.refill
    if fits then
      local after = left + limit.cost
      if has_notes then
        note(template, part, k, left, after, now)
      end
      left, used[k] = after, after
    end
    if refill > 1 then
      local rest = -left % refill
      full = now + (left + rest) / refill
      values[field], values[field + 1] = rest, full
      field = field + 3
    else
      full = now + left
      values[field] = full
      field = field + 2
    end
    if full > longest then
      longest = full
    end
  end
  if fits and not pieces and not part.is_marked then
    state = pack(part.format, unpack(values))
  elseif fits and part.stored == part.last and not part.is_marked then
    state = pack(part.format, unpack(values)) .. table.concat(pieces)
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
      if #state < 8 then
        return nil
      end
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
  for p = 1, count do
    if not read(template, parts[p], states[decisions[place + p]] or '', now) then
      return nil
    end
  end

  local used, limits, fits = template.used, template.limits, true
  for k = 1, #limits do
    if used[k] > limits[k].room then
      fits = false
      break
    end
  end
  for p = 1, count do
    local part = parts[p]
    if fits or part.is_converted then
      write(template, part, decisions[place + p], now, fits)
    end
  end
  local reply = pack(template.reply, fits and TAKEN or REFUSED, now, unpack(used))
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

