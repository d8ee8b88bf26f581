local call = redis.call

-- The request. A template's charges are read where they are needed.
local request = ARGV[1]
local is_given, clock, template_count, decision_count, position = unpack_from('<BI7HH', request)

-- Without its numbers each field of a charge but the last has a fixed width.
local CHARGE, CHARGE_WIDTH = '<HHI7I7I4I4BI7I7I7I7Bc0', 56

local templates = {}
for i = 1, template_count do
  local is_plain, operation, taken_at, clients, charges, start = unpack_from('<BBI7HH', request, position)
  templates[i] = {
    is_plain = is_plain == 1,
    operation = operation,
    taken_at = taken_at,
    clients = clients,
    charge_count = charges,
    start = start,
  }
  position = start
  for _ = 1, charges do
    position = position + CHARGE_WIDTH + string.byte(request, position + CHARGE_WIDTH - 1)
  end
end

-- For each decision its template, then its clients.
local decisions = { unpack_from('<' .. string.rep('H', (#request - position + 1) / 2), request, position) }

-- Everything is decided at `clock`: the server's, unless an instant is given. A test gives one. Its clock and the
-- server's do not run alike, so what is written under it lives for a minute at least.
local shortest_lifetime = 60000
if is_given == 0 then
  local time = call('TIME')
  clock = tonumber(time[1]) * 1000000 + tonumber(time[2])
  shortest_lifetime = 1
end
-- An entry that was changed later than this may be from a clock that was wrong.
local border = clock + TRUSTED_LEAD

-- The stored entry of each client; false where there is none.
local states = call('MGET', unpack(KEYS))

-- When nothing is used any more of the entries that have changed. The entry itself is in `states`: false where nothing
-- is left.
local full_at = {}

local format = string.format

-- Returns the milliseconds that an entry is kept which is full at an instant. As text: Redis would print a number with
-- all digits that it may have.
local function lifetime_until(full)
  local lifetime = full - clock
  lifetime = (lifetime + -lifetime % 1000) / 1000
  return format('%d', max(lifetime, shortest_lifetime))
end

-- The lifetimes of new entries, by that instant. Most new clients of a call share one, and printing a number is slow.
local lifetimes = {}

