-- The model of all algorithms.

local function saturating_sub(a, b)
  return max(a - b, 0)
end

-- The methods of quotas, by the kind of state. A charge is a quota too. Call `advance` first, because the methods
-- expect a state as of `now`.
local ALGORITHMS = {}

-- Returns the remaining units. A debt is less than 0.
local function balance(self, state, now)
  return self.capacity - div_ceil(self:used(state, now), unit_of(self))
end

-- Takes units of a refused request from a window or a log, but not into debt.
local function penalise(self, state, now, cost)
  self:take(state, now, min(cost, max(self:balance(state, now), 0)))
end

-- Returns the instant at which the counter is full.
local function full_instant(_, state)
  return state.full_at
end

-- Takes units of another quota, which come back no earlier than at the rate of this quota.
local function take_evenly(self, state, now, units)
  self:take(state, now, units)
end

-- Returns the time in which a window or log gives back units at its rate, at most its period.
local function refill_micros(self, units)
  if units >= self.capacity then
    return self.pace
  end
  local micros, rest = multiply_divide(units, self.pace, self.capacity)
  return micros + min(rest, 1)
end

local function new_algorithm(kind)
  local algorithm = {
    balance = balance,
    full_at = full_instant,
    penalise = penalise,
    take_evenly = take_evenly,
    refill_micros = refill_micros,
  }
  algorithm.__index = algorithm
  ALGORITHMS[kind] = algorithm
  return algorithm
end

