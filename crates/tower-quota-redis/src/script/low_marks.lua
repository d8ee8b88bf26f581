-- The low marks of a bucket, in a list. A mark is an instant, followed by the least used grains since the instant. The
-- instants and the grains rise from mark to mark.

-- Lowers the marks, if any, to the used grains just before a change.
local function note_low(marks, used)
  if not marks then
    return
  end
  local size = #marks
  while size > 2 and marks[size - 2] >= used do
    marks[size], marks[size - 1] = nil, nil
    size = size - 2
  end
  marks[size] = min(marks[size], used)
end

-- Adds a mark with the used grains after a charge. A full list drops the mark closest to its predecessor.
local function add_mark(marks, now, used)
  local size = #marks
  if marks[size] == used then
    return
  elseif marks[size - 1] ~= now then
    size = size + 2
  end
  marks[size - 1] = now
  marks[size] = used
  if size > 2 * MOST_MARKS then
    local closest, gap = 2, marks[2]
    for position = 4, size, 2 do
      local above = marks[position] - marks[position - 2]
      if above < gap then
        closest, gap = position, above
      end
    end
    table.remove(marks, closest)
    table.remove(marks, closest - 1)
  end
end

-- Returns the bytes of a slot with the marks of the bucket.
local function with_marks(slot, marks)
  local packed = pack('<' .. rep('I7', #marks), unpack(marks))
  return sub(slot, 1, 4) .. char(TOKEN_BUCKET + WATCHED) .. sub(slot, 6, -8) .. packed .. sub(slot, -7)
end

-- Reads the marks from a position to the last byte.
local function unpack_marks(bytes, position, last)
  local count = (last - position + 1) / 7
  if count < 2 or count > 2 * MOST_MARKS or count % 2 ~= 0 then
    error('marks that no bucket has')
  end
  local marks = { unpack_from('<' .. rep('I7', count), bytes, position) }
  -- The position after the marks.
  marks[#marks] = nil
  return marks
end

