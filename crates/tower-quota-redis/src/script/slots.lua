-- The part of the fast path for entries with other slots, slots in another order, buckets with marks, and buckets of
-- other quotas. An error leaves the decision to the model.

-- Reads the slots of an entry in any order, from a position on. The caller has read the limits before `k`. Sets
-- `pieces` of the part to the slots in stored order, as the position of a limit or the bytes of an unknown slot.
-- Returns whether the charges fit.
local function scan(template, part, state, position, k, now)
  local limits, counts, pieces, marks, is_found, index, fits = template.limits, template.counts, {}, {}, {}, {}, true
  part.longest = 0
  for j = part.first, part.last do
    is_found[j], index[limits[j].id] = j < k, j
    if j < k then
      pieces[#pieces + 1] = j
    end
  end
  while position <= #state do
    local length, body = varint(state, position)
    local behind = body + length
    local id, kind = unpack_from('<I4B', state, body)
    local full = unpack_from('<I7', state, behind - 7)
    local asked = index[id]
    if length < 15 or is_found[asked] then
      error('an entry that makes no sense')
    elseif asked then
      is_found[asked], pieces[#pieces + 1] = true, asked
      -- A full limit is the same as no limit.
      if full > now then
        local limit, numbers = limits[asked], sub(limits[asked].head, 7)
        local rest, used = body + 5 + #numbers, nil
        local is_same = sub(state, body + 5, rest - 1) == numbers
        if limit.kind ~= TOKEN_BUCKET then
          if kind ~= limit.kind or not is_same or behind - rest ~= limit.width - #limit.head then
            error('a state for the model')
          end
          local _, start, before, units = unpack_from(limit.format, state, position)
          if kind == FIXED_WINDOW then
            before, units = 0, before
          end
          counts[asked], used = count_window(limit, part.values, now, start, before, units)
          if not used then
            error('a count for the model')
          end
        else
          local quota = limit
          if kind % WATCHED ~= TOKEN_BUCKET then
            error('a state for the model')
          elseif not is_same then
            quota, rest = stored_quota(state, body + 4)
            template.converted = (template.converted or 0) + 2 ^ (asked - 1)
          end
          used = (full - now) * quota.pace
          if quota.pace > 1 then
            used = used - unpack_from('<I7', state, rest)
            rest = rest + 7
          end
          if not is_same then
            used = converted_used(used, quota, limit)
          elseif kind == TOKEN_BUCKET + WATCHED then
            marks[asked] = unpack_marks(state, rest, behind - 8)
          end
          counts[asked] = used
        end
        fits = fits and used <= limit.room
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
  part.pieces, part.marks = pieces, marks
  return fits
end

-- Returns the bytes of an entry in pieces, after the charges of the part.
local function join(template, part, now)
  local values, pieces, marks, slots = part.values, part.pieces, part.marks, {}
  for k = part.first, part.last do
    local limit, after = template.limits[k], template.counts[k]
    slots[k] = pack(limit.format, unpack(values, limit.from, limit.to))
    note_low(marks[k], after - limit.cost)
    if limit.watches then
      marks[k] = marks[k] or {}
      add_mark(marks[k], now, after)
    end
    if marks[k] then
      slots[k] = with_length(with_marks(sub(slots[k], 2), marks[k]))
    end
  end
  for i, piece in ipairs(pieces) do
    pieces[i] = slots[piece] or piece
  end
  return pack(HEADER, VERSION, now) .. concat(pieces)
end
