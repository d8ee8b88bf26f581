local call = redis.call

local TEMPLATE = '<BBI7HHHH'
local CHARGE = '<HHI7I7I4I4I4BI7I7I7I7Bc0'

local request = ARGV[1]
local is_given, clock, template_count, decision_count, position = unpack_from('<BI7HH', request)

-- A test gives the instant. The clock of the test differs from the server's clock, so the server keeps the entries for
-- a minute at least.
local shortest_lifetime = 60000
if is_given == 0 then
  local time = call('TIME')
  clock = time[1] * 1000000 + time[2]
  shortest_lifetime = 1
end
-- A change after the border may come from a wrong clock.
local border = clock + TRUSTED_LEAD

-- The stored entries of the clients, or false. Redis answers nothing for sets.
local states = call('MGET', unpack(KEYS))
