-- The long way, for everything that fast.lua leaves. Its functions are only made when a call needs them: making them
-- takes longer than a decision does.

local MOST_GRAINS = 2 ^ 50
local MOST_USED = 2 * MOST_GRAINS
local MOST_COUNTED = 2 ^ 51

local function saturating_sub(a, b)
  return max(a - b, 0)
end

-- Flags of a charge.
local QUEUES, COUNTS_REFUSALS = 1, 2

local function has(flags, flag)
  return bit.band(flags, flag) ~= 0
end

-- What one limit says of one cost.
local ADMIT, REFUSE, NEVER = 0, 1, 2

