-- One change of the rules, or a look at them. All keys share one hash tag.
-- ARGV: the operation, the channel, then what the operation takes.
local state, infos, texts, blocks, ends, reports = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local operation, channel = ARGV[1], ARGV[2]

local function microseconds()
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000000 + time[2])
end

-- Revisions begin at the server's time, so that one of before a loss of data does not come again.
local function changed()
  if redis.call('HEXISTS', state, 'revision') == 0 then
    redis.call('HSET', state, 'revision', microseconds())
  end
  redis.call('PUBLISH', channel, redis.call('HINCRBY', state, 'revision', 1))
end

local function newest()
  return redis.call('HGET', state, 'shadow') or redis.call('HGET', state, 'current')
end

local function conflict()
  return { 'conflict', newest() or '' }
end

local function drop_old(latest, kept)
  local current = redis.call('HGET', state, 'current')
  for _, number in ipairs(redis.call('HKEYS', infos)) do
    if tonumber(number) <= latest - kept and number ~= current then
      redis.call('HDEL', infos, number)
      redis.call('HDEL', texts, number)
    end
  end
end

local function drop_forgotten(now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now)) do
    redis.call('HDEL', blocks, id)
    redis.call('ZREM', ends, id)
  end
end

local function add_block(id, forgotten_at, block)
  redis.call('HSET', blocks, id, block)
  redis.call('ZADD', ends, forgotten_at, id)
end

if operation == 'state' then
  local revision = redis.call('HGET', state, 'revision') or '0'
  if revision == ARGV[3] then
    return { 'same' }
  end
  local numbers = redis.call('HMGET', state, 'current', 'shadow')
  return { 'ok', revision, numbers[1] or '', numbers[2] or '', redis.call('HVALS', blocks) }
end

if operation == 'put' then
  local expected, above, is_shadow, kept, info, text = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7], ARGV[8]
  if expected ~= '' and expected ~= (newest() or '0') then
    return conflict()
  end
  local latest = math.max(tonumber(redis.call('HGET', state, 'latest') or '0'), above) + 1
  local number = string.format('%.0f', latest)
  redis.call('HSET', state, 'latest', number)
  redis.call('HDEL', state, 'shadow', 'restored')
  redis.call('HSET', state, is_shadow == '1' and 'shadow' or 'current', number)
  redis.call('HSET', infos, number, info)
  redis.call('HSET', texts, number, text)
  drop_old(latest, tonumber(kept))
  changed()
  return { 'ok', number }
end

if operation == 'promote' or operation == 'abandon' then
  local shadow = redis.call('HGET', state, 'shadow')
  if shadow ~= ARGV[3] then
    return conflict()
  end
  redis.call('HDEL', state, 'shadow')
  if operation == 'promote' then
    redis.call('HSET', state, 'current', shadow)
  end
  changed()
  return { 'ok' }
end

if operation == 'restore' then
  local number, info, text = ARGV[3], ARGV[4], ARGV[5]
  local current = redis.call('HGET', state, 'current')
  local is_older = current and redis.call('HEXISTS', state, 'restored') == 1 and tonumber(current) < tonumber(number)
  if newest() and not is_older then
    return { 'same' }
  end
  redis.call('HSET', state, 'latest', number, 'current', number, 'restored', '1')
  redis.call('HSET', infos, number, info)
  redis.call('HSET', texts, number, text)
  for i = 6, #ARGV, 3 do
    if redis.call('HEXISTS', blocks, ARGV[i]) == 0 then
      add_block(ARGV[i], ARGV[i + 1], ARGV[i + 2])
    end
  end
  changed()
  return { 'ok' }
end

if operation == 'put_block' then
  local id, forgotten_at, block, now, most = ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
  drop_forgotten(now)
  local before = redis.call('HGET', blocks, id)
  if not before and redis.call('HLEN', blocks) >= most then
    return { 'full' }
  end
  add_block(id, forgotten_at, block)
  changed()
  return { 'ok', before or '' }
end

if operation == 'remove_block' then
  local before = redis.call('HGET', blocks, ARGV[3])
  if before then
    redis.call('HDEL', blocks, ARGV[3])
    redis.call('ZREM', ends, ARGV[3])
    changed()
  end
  return { 'ok', before or '' }
end

-- Reports are no change: nothing follows them.
if operation == 'put_report' then
  local shadow, instance, report, most, seconds = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
  if redis.call('HGET', state, 'shadow') ~= shadow then
    return { 'same' }
  end
  if redis.call('HGET', reports, 'shadow') ~= shadow then
    redis.call('DEL', reports)
    redis.call('HSET', reports, 'shadow', shadow)
  end
  -- One field is the number of the shadow document.
  if redis.call('HEXISTS', reports, instance) == 0 and redis.call('HLEN', reports) > most then
    return { 'same' }
  end
  redis.call('HSET', reports, instance, report)
  redis.call('EXPIRE', reports, seconds)
  return { 'ok' }
end

if operation == 'reports' then
  local found = { 'ok' }
  if redis.call('HGET', reports, 'shadow') == ARGV[3] then
    local all = redis.call('HGETALL', reports)
    for i = 1, #all, 2 do
      if all[i] ~= 'shadow' then
        found[#found + 1] = all[i + 1]
      end
    end
  end
  return found
end

return redis.error_reply('unknown operation ' .. operation)
