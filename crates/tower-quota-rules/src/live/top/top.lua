-- Publishes the figures of an instance, deletes old ones, and returns those of all if they are asked for.
-- KEYS[1]  the hash: instance -> figures
-- KEYS[2]  the sorted set: instance -> milliseconds of this server at its last figures
-- ARGV     instance, figures, milliseconds after which figures are forgotten, "read" or ""
-- Ages are those of this server's clock, so the clocks of instances do not matter.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[1])
-- Also if nothing is ever read: instances that restart have other names. A few at a time keep each call short.
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', now - ARGV[3]), 'LIMIT', 0, 100)
if #old > 0 then
  redis.call('HDEL', KEYS[1], unpack(old))
  redis.call('ZREM', KEYS[2], unpack(old))
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local answer = {}
if ARGV[4] ~= 'read' then
  return answer
end
local seen = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for at = 1, #seen, 2 do
  local figures = redis.call('HGET', KEYS[1], seen[at])
  -- After the clock was set back, figures look new until it has caught up.
  local age = math.max(now - seen[at + 1], 0)
  if figures and age <= tonumber(ARGV[3]) then
    answer[#answer + 1] = age
    answer[#answer + 1] = figures
  end
end
return answer
