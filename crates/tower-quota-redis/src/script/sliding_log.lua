-- Sliding window log. `entries`: one string of fixed-width entries, each an instant and the running total up to and
-- including it; `base`: the running total before the first. Entries are read where they lie, by binary search: a long
-- log is never parsed as a unit. Positions count from 0.
local sliding_log = {}
ALGORITHMS[SLIDING_LOG] = sliding_log

-- Both numbers are below 2^53, so seven bytes hold them.
local ENTRY, WIDTH = '<I7I7', 14
-- How many entries are read and written together where all of them change.
local MANY = 64
local ENTRIES = '<' .. string.rep('I7I7', MANY)

function sliding_log.fresh()
  return { base = 0, entries = '' }
end

function sliding_log.length(state)
  return #state.entries / WIDTH
end

-- The instant and the running total of the entry at a position.
function sliding_log.entry(state, position)
  return unpack_from(ENTRY, state.entries, position * WIDTH + 1)
end

-- The entries from `first` up to, not including, `last`.
function sliding_log.slice(state, first, last)
  return sub(state.entries, first * WIDTH + 1, last * WIDTH)
end

-- The position of the first entry for which `has_passed(stamp, running)` does not hold.
function sliding_log.partition_point(state, has_passed)
  local low, high = 0, sliding_log.length(state)
  while low < high do
    local middle = div(low + high, 2)
    if has_passed(sliding_log.entry(state, middle)) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- The position of the first entry that still counts at `now`.
function sliding_log.live(quota, state, now)
  return sliding_log.partition_point(state, function(stamp)
    return stamp + quota.period <= now
  end)
end

function sliding_log.total_before(state, position)
  if position == 0 then
    return state.base
  end
  local _, running = sliding_log.entry(state, position - 1)
  return running
end

function sliding_log.total_from(state, position)
  return sliding_log.total_before(state, sliding_log.length(state)) - sliding_log.total_before(state, position)
end

function sliding_log.judge(quota, state, now, cost)
  local live = sliding_log.live(quota, state, now)
  local total = sliding_log.total_from(state, live)
  if total + cost <= quota.capacity then
    return ADMIT, 0
  end
  -- The oldest entries must expire until this many units are free.
  local must_go = sliding_log.total_before(state, live) + (total + cost - quota.capacity)
  local last_to_go = sliding_log.partition_point(state, function(_, running)
    return running < must_go
  end)
  return REFUSE, sliding_log.entry(state, last_to_go) + quota.period - now
end

function sliding_log.balance(quota, state, now)
  return quota.capacity - sliding_log.used(quota, state, now)
end

-- The instant at which the newest stamp expires; 0 if there is none.
function sliding_log.full_at(quota, state)
  if state.entries == '' then
    return 0
  end
  return sliding_log.entry(state, sliding_log.length(state) - 1) + quota.period
end

-- The entries from a position on with `less` taken off their running totals.
function sliding_log.lowered(state, position, less)
  local lowered, length = {}, sliding_log.length(state)
  while position < length do
    local count = min(length - position, MANY)
    local format = count == MANY and ENTRIES or '<' .. string.rep('I7I7', count)
    local numbers = { unpack_from(format, state.entries, position * WIDTH + 1) }
    for i = 2, count * 2, 2 do
      numbers[i] = numbers[i] - less
    end
    -- The last number is where the reading ended.
    lowered[#lowered + 1] = pack(format, unpack(numbers, 1, count * 2))
    position = position + count
  end
  return table.concat(lowered)
end

-- Drops the stamps that have expired by `now`.
function sliding_log.advance(quota, state, now)
  local first_live = sliding_log.live(quota, state, now)
  state.base = sliding_log.total_before(state, first_live)
  state.entries = sliding_log.slice(state, first_live, sliding_log.length(state))
  if state.entries == '' then
    state.base = 0
  elseif state.base > MOST_COUNTED then
    -- Running totals only ever grow: once in a very long while they are brought back to where they are exact.
    state.entries = sliding_log.lowered(state, 0, state.base)
    state.base = 0
  end
end

-- Drops the stamps that have expired, and merges all but the oldest ones into one.
function sliding_log.abridge(quota, state, now)
  sliding_log.advance(quota, state, now)
  local length = sliding_log.length(state)
  if length > KEPT_STAMPS + 1 then
    local cut = sliding_log.entry(state, KEPT_STAMPS)
    local total = sliding_log.total_before(state, length)
    state.entries = sliding_log.slice(state, 0, KEPT_STAMPS) .. pack(ENTRY, cut, total)
  end
end

function sliding_log.take(_, state, now, cost)
  local length = sliding_log.length(state)
  local before = sliding_log.total_before(state, length)
  local running = min(before + cost, state.base + MOST_COUNTED)
  if running == before then
    return 0
  end
  if length >= LONGEST_LOG or length > 0 and sliding_log.entry(state, length - 1) == now then
    -- Of what is charged into debt the newest share a stamp, so that no log is longer than the longest quota.
    length = length - 1
  end
  state.entries = sliding_log.slice(state, 0, length) .. pack(ENTRY, now, running)
  return running - before
end

-- Units that count at `now`.
function sliding_log.used(quota, state, now)
  return sliding_log.total_from(state, sliding_log.live(quota, state, now))
end

-- Removes up to `cost` units of a stamp.
function sliding_log.refund(_, state, _, taken_at, cost)
  local position = sliding_log.partition_point(state, function(stamp)
    return stamp < taken_at
  end)
  if position == sliding_log.length(state) then
    return
  end
  local stamp, running = sliding_log.entry(state, position)
  if stamp ~= taken_at then
    return
  end
  local before = sliding_log.total_before(state, position)
  local back = min(cost, running - before)
  local kept = position
  if running - back == before then
    kept = position + 1
  end
  state.entries = sliding_log.slice(state, 0, position) .. sliding_log.lowered(state, kept, back)
end

function sliding_log.encode(_, state)
  return pack('<I7', state.base) .. state.entries
end

function sliding_log.decode(_, bytes)
  if (#bytes - 7) % WIDTH ~= 0 then
    error('a log that was cut off')
  end
  return { base = unpack_from('<I7', bytes), entries = sub(bytes, 8) }, ''
end

