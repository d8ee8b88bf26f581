-- The low marks of a bucket, in a list: an instant, the least grains used since, the next instant, and so on. Both rise
-- from mark to mark.

-- Lowers the marks to what is used just before a change.
local function note_low(marks, used)
  local size, first = #marks, nil
  for position = size, 2, -2 do
    if marks[position] < used then
      break
    end
    first = position
  end
  if first then
    marks[first] = used
    for position = size, first + 1, -1 do
      marks[position] = nil
    end
  end
end

-- Adds the mark of a charge, after which this much is used. Of one more than there may be, that goes which is the least
-- above the one before, or above nothing.
local function add_mark(marks, now, used)
  local size = #marks
  if marks[size] == used then
    return
  elseif marks[size - 1] == now then
    marks[size] = used
    return
  end
  marks[size + 1], marks[size + 2] = now, used
  if size == 2 * MOST_MARKS then
    local closest, gap = 2, marks[2]
    for position = 4, size + 2, 2 do
      if marks[position] - marks[position - 2] < gap then
        closest, gap = position, marks[position] - marks[position - 2]
      end
    end
    table.remove(marks, closest)
    table.remove(marks, closest - 1)
  end
end

-- Returns the position of the last mark that is of this instant or earlier.
local function mark_at(marks, instant)
  for position = #marks - 1, 1, -2 do
    if marks[position] <= instant then
      return position
    end
  end
end

-- Lowers the marks by a refund, as if its charge at this instant had never been made.
local function refund_marks(marks, instant, grains)
  local first, size, kept = mark_at(marks, instant) or 1, #marks, 0
  for position = first + 1, size, 2 do
    marks[position] = max(marks[position] - grains, 0)
  end
  for position = 1, size, 2 do
    local low = position < first and min(marks[position + 1], marks[first + 1]) or marks[position + 1]
    if marks[kept] ~= low then
      marks[kept + 1], marks[kept + 2] = marks[position], low
      kept = kept + 2
    end
  end
  for position = size, kept + 1, -1 do
    marks[position] = nil
  end
end

local function pack_marks(marks)
  return pack('<' .. string.rep('I7', #marks), unpack(marks))
end

-- Reads so many stored bytes of marks from a position on.
local function unpack_marks(bytes, position, size)
  if size < 14 or size > 14 * MOST_MARKS or size % 14 ~= 0 then
    error('marks that no bucket has')
  end
  local marks = { unpack_from('<' .. string.rep('I7', size / 7), bytes, position) }
  -- The position behind them.
  marks[#marks] = nil
  return marks
end

