-- Decides as fast.lua does, which says why and how, without what it takes to read many decisions and to keep them apart: a
-- lone one would pay for that with half of its time.
for i = 1, definition_count do
  local stored = definitions[i + 1]
  if stored and stored ~= definition_numbers[i] then
    return ''
  end
end

-- The instant, then of each charge its quota and the grains used.
local format = '<I7' .. string.rep('I5I7', definition_count)
local state, slots = states[1], {}
local at = now
if state then
  if #state ~= 7 + 12 * definition_count then
    return ''
  end
  slots = { unpack_from(format, state) }
  at = max(now, slots[1])
end

local elapsed, room, whole, fits = at - (slots[1] or at), border - at, at, true
local taken = { at }
local start = charges_start
for i = 1, definition_count do
  local id, _, _, _, capacity, grain, refill, _, cost = unpack_from('<I5I4BBI7I7I7I7I7', request, start)
  start = start + CHARGE
  if slots[i * 2] and slots[i * 2] ~= id then
    return ''
  end
  local before = max((slots[i * 2 + 1] or 0) - elapsed * refill, 0)
  local after = before + cost * grain
  if after > capacity * grain then
    fits = false
  end
  if after > room * refill then
    whole = max(whole, at + div_ceil(after, refill))
  end
  slots[i * 2], slots[i * 2 + 1] = id, before
  taken[i * 2], taken[i * 2 + 1] = id, after
end

local whole_at, changed, changed_count = { whole }, { 1 }, 0
local reply
if fits then
  states[1], changed_count = pack(format, unpack(taken)), 1
  reply = '\0' .. states[1]
else
  slots[1] = at
  reply = '\1' .. pack(format, unpack(slots))
end

