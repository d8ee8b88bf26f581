-- The usual GCRA limiter: one limit, one key, one call. The baseline that tower-quota's script is measured against.
-- KEYS[1] the counter. ARGV: emission interval and burst tolerance in microseconds.
local interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local arrival = tonumber(redis.call('GET', KEYS[1])) or now
if arrival < now then arrival = now end
if arrival - now > tolerance then
  return { 0, 0, arrival - now - tolerance }
end
arrival = arrival + interval
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))
return { 1, math.floor((tolerance + interval - (arrival - now)) / interval), 0 }
