-- Publishes the figures of an instance, and returns those of all if they are asked for.
-- KEYS[1]  the hash: instance -> milliseconds of this server, a space, figures
-- ARGV     instance, figures, milliseconds after which figures are forgotten, "read" or ""
-- Ages are those of this server's clock, so the clocks of instances do not matter.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local longest = tonumber(ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now) .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local answer = {}
if ARGV[4] ~= 'read' then
  return answer
end
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local figures = all[at + 1]
  local space = string.find(figures, ' ', 1, true) or 1
  local since = tonumber(string.sub(figures, 1, space - 1)) or 0
  -- After the clock was set back, figures look new until it has caught up.
  local age = math.max(now - since, 0)
  if age > longest then
    redis.call('HDEL', KEYS[1], all[at])
  else
    answer[#answer + 1] = age
    answer[#answer + 1] = string.sub(figures, space + 1)
  end
end
return answer
