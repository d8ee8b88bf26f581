-- The shortest path, which most calls of a service with few requests take. Admits one plain request of one client, if
-- the entry has only the slots of the request, in the same order. Makes no tables and no functions, because they would
-- take longer than the decision. The other paths decide the request if this path has not returned.
if decision_count == 1 and #KEYS == 1 then
  local state, now, is_admitted = states[1], clock, true
  local is_plain, _, _, _, _, charge_count, _, start = unpack_from(TEMPLATE, request, position)
  if not state then
    state = ''
  elseif #state < 8 then
    is_admitted = false
  else
    local version, at = unpack_from(HEADER, state)
    is_admitted = version == VERSION and at <= border
    now = max(now, at)
  end
  is_admitted = is_admitted and is_plain == 1
  local slots, counts, longest, slot = '', '', 0, 9
  for _ = 1, is_admitted and charge_count or 0 do
    local _, flags, cost, _, _, _, _, kind, capacity, grain, pace, offset, head, behind =
      unpack_from(CHARGE, request, start)
    start = behind
    local is_bucket, width, numbers = kind == TOKEN_BUCKET, #head + 7, 'I7'
    if kind == SLIDING_WINDOW then
      width, numbers = #head + 28, 'I7I7I7I7'
    elseif not is_bucket then
      width, numbers = #head + 21, 'I7I7I7'
    elseif pace > 1 then
      width, numbers = #head + 14, 'I7I7'
    end
    local one, two, three = 0, 0, 0
    local is_known = slot <= #state
    if is_known then
      if slot + width > #state or byte(state, slot) ~= width or sub(state, slot + 1, slot + #head) ~= head then
        is_admitted = false
        break
      end
      one, two, three = unpack_from('<' .. numbers, state, slot + 1 + #head)
      slot = slot + 1 + width
    end
    local full, packed
    if is_bucket then
      local used = max(pace > 1 and (two - now) * pace - one or one - now, 0)
      is_admitted = flags == 0 and used <= (capacity - cost) * grain
      used = used + cost * grain
      local rest = -used % pace
      full = now + (used + rest) / pace
      counts = counts .. pack('<I7', used)
      packed = pace > 1 and pack('<I7I7', rest, full) or pack('<I7', full)
    else
      local is_sliding = kind == SLIDING_WINDOW
      local begin, before, count = max(now - (now % pace + pace - offset) % pace, 0), two, three
      if not is_sliding then
        before, count = 0, two
      end
      if one ~= begin then
        before, count = one + pace == begin and is_sliding and count or 0, 0
      end
      local used = count
      if before > 0 then
        local steps, left = (pace - pace % grain) / grain, begin + pace - now
        local weight = before * min((left + -left % grain) / grain, steps)
        used = count + (weight + -weight % steps) / steps
      end
      local fits_reply = before * SLIDING_BEFORE < 2 ^ 53 and count + cost < SLIDING_BEFORE
      is_admitted = used + cost <= capacity and (fits_reply or not is_sliding)
      count = count + cost
      counts = counts .. pack('<I7', before * SLIDING_BEFORE + count)
      if is_sliding then
        full = begin + 2 * pace
        packed = pack('<I7I7I7I7', begin, before, count, full)
      else
        full = begin < offset and offset or begin + pace
        packed = pack('<I7I7I7', begin, count, full)
      end
    end
    if not is_admitted then
      break
    end
    slots = slots .. char(width) .. head .. packed
    longest = max(longest, full)
  end
  if is_admitted and slot > #state then
    local lifetime = longest - clock
    lifetime = string.format('%d', max((lifetime + -lifetime % 1000) / 1000, shortest_lifetime))
    local answer = redis.pcall('PSETEX', KEYS[1], lifetime, pack(HEADER, VERSION, now) .. slots)
    -- The other paths report the error of a server that refuses to write.
    if not answer.err then
      return pack(HEADER, TAKEN, now) .. counts
    end
  end
end

