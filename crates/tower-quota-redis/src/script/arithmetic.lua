-- `a % b` is `a - floor(a / b) * b`, and exact for integers with a + b < 2^53. The distance from a / b to the next
-- larger integer is at least 1 / b, which is more than half of the gap between the doubles there.
local function div(a, b)
  return (a - a % b) / b
end

local function div_ceil(a, b)
  return (a + -a % b) / b
end

local function has(flags, flag)
  return bit.band(flags, flag) ~= 0
end

-- Reads a number with 7 bits in a byte, the lowest first. Returns the number and the position after the number.
local function varint(bytes, position)
  local value, unit = 0, 1
  for last = position, position + 7 do
    local digit = byte(bytes, last)
    value = value + digit % 128 * unit
    if digit < 128 then
      return value, last + 1
    end
    unit = unit * 128
  end
  error('a number without an end')
end

-- Reads a varint of 8 * n + zeros, and returns n with so many decimal zeros, and the position after the varint.
local function short(bytes, position)
  local value, behind = varint(bytes, position)
  return div(value, 8) * 10 ^ (value % 8), behind
end

local function to_varint(number)
  if number < 128 then
    return char(number)
  end
  return char(number % 128 + 128) .. to_varint(div(number, 128))
end

-- Returns the length of a byte string, followed by the byte string.
local function with_length(bytes)
  return to_varint(#bytes) .. bytes
end

