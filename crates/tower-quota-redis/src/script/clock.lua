-- The instant that everything is decided at: `now`, unless the server's clock counts.
--
-- A test sends an instant of its own. Its clock and the server's do not run alike, so what is written under it lives for
-- a minute at least.
local shortest_lifetime = 60000
if is_given == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  shortest_lifetime = 1
end

