-- The fast path, which decides plain charges of buckets and windows. Creates few tables and functions, because most
-- calls have one decision, and a busy server spends most time here. Leaves all other decisions to the model.

-- A count is a number that the reply has: the used grains of a bucket, the units of a fixed window, or the units of a
-- sliding window plus SLIDING_BEFORE times the units of the window before.

-- Prepares a template. Every client has a part, with the limits from `first` to `last`. Every decision overwrites
-- `counts` of the template, and `values` of a part.
local function prepare(template)
  local parts, limits, position, reply = {}, {}, template.start, HEADER
  for k = 1, template.charge_count do
    local client, flags, cost, _, id, _, _, kind, capacity, grain, pace, offset, head, behind =
      unpack_from(CHARGE, request, position)
    local part = parts[client]
    if not part then
      part = { first = k, last = k, format = HEADER, values = { VERSION, 0 }, watches = false }
      parts[client] = part
    end
    local is_bucket = kind == TOKEN_BUCKET
    local unit, numbers = is_bucket and grain or 1, 'I7'
    if kind == SLIDING_WINDOW then
      numbers = 'I7I7I7I7'
    elseif not is_bucket then
      numbers = 'I7I7I7'
    elseif pace > 1 then
      numbers = 'I7I7'
    end
    local values, size = part.values, #part.values
    local to = size + 1 + #numbers / 2
    head = char(#head + #numbers / 2 * 7) .. head
    values[size + 1] = head
    for number = size + 2, to do
      values[number] = 0
    end
    local slot = 'c' .. #head .. numbers
    limits[k] = {
      id = id,
      kind = kind,
      capacity = capacity,
      grain = grain,
      pace = pace,
      offset = offset,
      head = head,
      width = #head + #numbers / 2 * 7,
      format = '<' .. slot,
      cost = cost * unit,
      room = (capacity - cost) * unit,
      watches = is_bucket and flags == REFUNDABLE,
      -- The positions in `values`.
      from = size + 1,
      to = to,
    }
    part.last, part.format = k, part.format .. slot
    part.watches = part.watches or limits[k].watches
    reply, position = reply .. 'I7', behind
  end
  template.parts, template.limits, template.counts, template.reply = parts, limits, {}, reply
  return parts
end

-- Moves a window to `now`, and notes the start and the window before in `values`. Returns the count and the used units,
-- or nothing if the count does not fit a number.
local function count_window(limit, values, now, start, before, units)
  local period, from = limit.pace, limit.from
  local current = max(now - (now % period + period - limit.offset) % period, 0)
  if start ~= current then
    before, units = start + period == current and limit.kind == SLIDING_WINDOW and units or 0, 0
  end
  values[from + 1] = current
  if limit.kind ~= SLIDING_WINDOW then
    return units, units
  elseif before * SLIDING_BEFORE >= 2 ^ 53 or units + limit.cost >= SLIDING_BEFORE then
    return
  end
  values[from + 2] = before
  local used = units
  if before > 0 then
    local grain = limit.grain
    local steps = (period - period % grain) / grain
    local left = current + period - now
    local weight = before * min((left + -left % grain) / grain, steps)
    used = units + (weight + -weight % steps) / steps
  end
  return before * SLIDING_BEFORE + units, used
end

-- Returns the reply to a decision, or nothing for a decision of the model. `decisions` has the template at `place`,
-- followed by the clients. Without the slow functions, leaves entries in another order to the model too.
local function decide_plain(template, place, slow)
  local parts, now, are_new, fits = template.parts or prepare(template), clock, true, true
  local limits, counts = template.limits, template.counts
  for p = 1, #parts do
    local state = states[decisions[place + p]]
    if state then
      are_new = false
      if #state < 8 then
        return
      end
      local version, at = unpack_from(HEADER, state)
      if version ~= VERSION or at > border then
        return
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
    local part, state = parts[p], states[decisions[place + p]] or ''
    local position, beyond, known = 9, #state + 1, part.first
    for k = part.first, part.last do
      local limit, head, one, two, three = limits[k], nil, 0, 0, 0
      -- Most entries have the slots in the order of the limits.
      if known == k and position + limit.width <= beyond then
        head, one, two, three = unpack_from(limit.format, state, position)
        if head == limit.head then
          known, position = k + 1, position + limit.width
        else
          one, two, three = 0, 0, 0
        end
      end
      local count, used
      if limit.kind ~= TOKEN_BUCKET then
        if limit.kind == FIXED_WINDOW then
          two, three = 0, two
        end
        count, used = count_window(limit, part.values, now, one, two, three)
        if not count then
          return
        end
      else
        count = one - now
        if limit.pace > 1 then
          count = (two - now) * limit.pace - one
        end
        count = count > 0 and count or 0
        used = count
      end
      counts[k], fits = count, fits and used <= limit.room
    end
    part.pieces = nil
    if position < beyond or part.watches then
      local is_read, does_fit
      if slow then
        is_read, does_fit = pcall(slow.scan, template, part, state, position, known, now)
      end
      if not is_read then
        return
      end
      fits = fits and does_fit
    end
  end
  if template.converted and not fits then
    -- A refusal that converts a bucket.
    return
  end
  for p = 1, fits and #parts or 0 do
    local part, client = parts[p], decisions[place + p]
    local values, longest = part.values, part.pieces and part.longest or 0
    values[2] = now
    for k = part.first, part.last do
      local limit, after = limits[k], counts[k] + limits[k].cost
      local to, pace, full = limit.to, limit.pace, nil
      counts[k] = after
      if limit.kind == TOKEN_BUCKET then
        full = now + after
        if pace > 1 then
          local rest = -after % pace
          full = now + (after + rest) / pace
          values[to - 1] = rest
        end
      else
        local start = values[limit.from + 1]
        values[to - 1], full = after % SLIDING_BEFORE, start + 2 * pace
        if limit.kind == FIXED_WINDOW then
          values[to - 1], full = after, start < limit.offset and limit.offset or start + pace
        end
      end
      values[to] = full
      if full > longest then
        longest = full
      end
    end
    full_at[client] = longest
    states[client] = part.pieces and slow.join(template, part, now) or pack(part.format, unpack(values))
  end
  local reply = pack(template.reply, fits and TAKEN or REFUSED, now, unpack(counts))
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
