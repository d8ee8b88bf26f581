-- Logs and holds are strings of entries with a fixed width, because parsing a long list takes long. An entry begins
-- with the instant.

-- Returns the length of the first entries. The first two numbers of the entries satisfy a condition, and later entries
-- must not satisfy the condition.
local function prefix(entries, width, condition)
  local low, high = 0, #entries / width
  while low < high do
    local middle = div(low + high, 2)
    if condition(unpack_from('<I7I7', entries, middle * width + 1)) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low * width
end

-- Returns the entries before the entry of an instant, the entry, and the entries after it, or nil without an entry.
local function split(entries, width, instant)
  local first = prefix(entries, width, function(stamp)
    return stamp < instant
  end)
  if first < #entries and unpack_from('<I7', entries, first + 1) == instant then
    return sub(entries, 1, first), sub(entries, first + 1, first + width), sub(entries, first + width + 1)
  end
end

-- Sliding window log. An entry has an instant, and the running total including the units of the entry. `base` is the
-- running total before the first entry.
local sliding_log = new_algorithm(SLIDING_LOG)

local ENTRY, WIDTH = '<I7I7', 14
-- A converted log merges the units of an eighth of the elapsed time, so a unit is late by at most that much.
local UNITS_PER_STAMP = 8

function sliding_log:fresh()
  return { base = 0, entries = '' }
end

-- Returns the instant and the running total of the newest entry.
local function newest(state)
  if state.entries == '' then
    return 0, state.base
  end
  return unpack_from(ENTRY, state.entries, #state.entries - WIDTH + 1)
end

-- Returns entries with lower running totals.
local function lowered(entries, less)
  return (string.gsub(entries, rep('.', WIDTH), function(entry)
    local stamp, running = unpack_from(ENTRY, entry)
    return pack(ENTRY, stamp, running - less)
  end))
end

-- Drops expired stamps.
function sliding_log:advance(state, now)
  local gone = prefix(state.entries, WIDTH, function(stamp)
    return stamp + self.pace <= now
  end)
  if gone > 0 then
    local _, base = unpack_from(ENTRY, state.entries, gone - WIDTH + 1)
    state.base, state.entries = base, sub(state.entries, gone + 1)
  end
  if state.entries == '' then
    state.base = 0
  elseif state.base > MOST_COUNTED then
    -- Running totals only grow. Restart the totals while the numbers are still exact.
    state.base, state.entries = 0, lowered(state.entries, state.base)
  end
  return state
end

-- Merges the newest stamps, and keeps KEPT_STAMPS of the oldest.
local function abridge(state)
  local kept, _, total = KEPT_STAMPS * WIDTH, newest(state)
  if #state.entries > kept + WIDTH then
    local cut = unpack_from(ENTRY, state.entries, kept + 1)
    state.entries = sub(state.entries, 1, kept) .. pack(ENTRY, cut, total)
  end
end

function sliding_log:used(state)
  local _, total = newest(state)
  return total - state.base
end

function sliding_log:until_fits(state, now, cost)
  local _, total = newest(state)
  -- All entries up to the total must expire.
  local must_go = total + cost - self.capacity
  if state.base >= must_go then
    return 0
  end
  local last_to_go = prefix(state.entries, WIDTH, function(_, running)
    return running < must_go
  end)
  return unpack_from(ENTRY, state.entries, last_to_go + 1) + self.pace - now
end

function sliding_log:full_at(state)
  return state.entries == '' and 0 or newest(state) + self.pace
end

function sliding_log:take(state, now, cost)
  local stamp, total = newest(state)
  local taken = min(cost, state.base + MOST_COUNTED - total)
  if taken > 0 then
    if stamp == now or #state.entries >= LONGEST_LOG * WIDTH then
      -- The newest units in debt share a stamp, so that no log is longer than the longest quota.
      state.entries = sub(state.entries, 1, -WIDTH - 1)
    end
    state.entries = state.entries .. pack(ENTRY, now, total + taken)
  end
  return taken
end

function sliding_log:take_evenly(state, now, units)
  local placed = 0
  while placed < units do
    -- A stamp for each unit would make the log of a large quota long.
    local together = min(max(div(placed, UNITS_PER_STAMP), 1), units - placed)
    placed = placed + together
    self:take(state, saturating_sub(now + self:refill_micros(placed), self.pace), together)
  end
end

-- Removes units of a stamp.
function sliding_log:refund(state, _, cost, taken_at)
  local before, entry, after = split(state.entries, WIDTH, taken_at)
  if not entry then
    return
  end
  local _, running = unpack_from(ENTRY, entry)
  local _, total = newest({ base = state.base, entries = before })
  local back = min(cost, running - total)
  if running - back == total then
    entry = ''
  end
  state.entries = before .. lowered(entry .. after, back)
end

function sliding_log:encode(state)
  return pack('<I7', state.base) .. state.entries
end

function sliding_log:decode(bytes, position)
  local base, first = unpack_from('<I7', bytes, position)
  local behind = #bytes + 1
  return { base = base, entries = sub(bytes, first) }, behind - (behind - first) % WIDTH
end

