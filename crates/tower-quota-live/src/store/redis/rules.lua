-- One change of the rules, or a look at them. All keys share one hash tag.
-- ARGV: the operation, the channel, then what the operation takes. An answer is a word and a value.
local state, infos, texts, blocks, ends = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local revisions, penalties, audit = KEYS[6], KEYS[7], KEYS[8]
local operation, channel = ARGV[1], ARGV[2]

local function microseconds()
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000000 + time[2])
end

-- Revisions follow the server's time. A change after a loss of data has a revision above the lost revisions.
local function next_revision()
  local now = microseconds()
  local known = redis.call('HGET', state, 'revision')
  if not known then
    redis.call('HSET', state, 'began', now, 'marked_since', now)
  end
  local next = string.format('%.0f', math.max(tonumber(now), tonumber(known or now) + 1))
  redis.call('HSET', state, 'revision', next)
  return next
end

-- The clock of a new primary may be behind the clock of the lost one.
local function pass_revision(known)
  local revision = redis.call('HGET', state, 'revision')
  if revision and tonumber(revision) < known then
    redis.call('HSET', state, 'revision', string.format('%.0f', known))
  end
end

local function publish(revision)
  redis.call('PUBLISH', channel, revision)
end

local function drop_old(latest, kept)
  for _, number in ipairs(redis.call('HKEYS', infos)) do
    if tonumber(number) <= latest - kept then
      redis.call('HDEL', infos, number)
      redis.call('HDEL', texts, number)
    end
  end
end

-- An instance that has not heard of an ended block has its end: it needs no mark.
local function drop_ended(now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 500)) do
    redis.call('HDEL', blocks, id)
    for _, ids in ipairs({ ends, revisions, penalties }) do
      redis.call('ZREM', ids, id)
    end
  end
end

local function add_block(id, until_at, is_of_penalty, block)
  -- Instances may still have a block of the same id that ends later.
  local known = redis.call('ZSCORE', ends, id)
  local ends_at = math.max(tonumber(known or '0'), tonumber(until_at))
  local revision = next_revision()
  redis.call('HSET', blocks, id, block)
  redis.call('ZADD', ends, string.format('%.0f', ends_at), id)
  redis.call('ZADD', revisions, revision, id)
  if is_of_penalty == '1' then
    redis.call('ZADD', penalties, until_at, id)
  else
    redis.call('ZREM', penalties, id)
  end
  return revision
end

-- The revision of a removed block stays until the block would have ended, as a mark for instances that have the block.
local function remove_block(id, most)
  local revision = next_revision()
  redis.call('HDEL', blocks, id)
  redis.call('ZREM', penalties, id)
  redis.call('ZADD', revisions, revision, id)
  if redis.call('ZCARD', revisions) > 2 * most then
    -- Instances that know less than this revision read all blocks.
    redis.call('HSET', state, 'marked_since', revision)
    for _, marked in ipairs(redis.call('ZRANGE', revisions, 0, -1)) do
      if redis.call('HEXISTS', blocks, marked) == 0 then
        redis.call('ZREM', revisions, marked)
        redis.call('ZREM', ends, marked)
      end
    end
  end
  return revision
end

if operation == 'state' then
  local known, is_next_page, page = ARGV[3], ARGV[4] == '1', tonumber(ARGV[5])
  local parts = redis.call('HMGET', state, 'revision', 'began', 'marked_since', 'current')
  local revision = parts[1] or '0'
  if revision == known and not is_next_page then
    return { 'same', false }
  end
  local number, marked_since = tonumber(known), tonumber(parts[3] or '0')
  local is_complete = not is_next_page and (not number or number < marked_since or number > tonumber(revision))
  local from = is_complete and '-inf' or '(' .. known
  local found = redis.call('ZRANGEBYSCORE', revisions, from, '+inf', 'WITHSCORES', 'LIMIT', 0, page)
  local ids, has_more = {}, 0
  for i = 1, #found, 2 do
    ids[#ids + 1] = found[i]
  end
  if #ids == page then
    revision, has_more = string.format('%.0f', tonumber(found[#found])), 1
  end
  local changed = #ids > 0 and redis.call('HMGET', blocks, unpack(ids)) or {}
  local numbers = { revision, parts[2] or '0', parts[4] }
  return { 'ok', { numbers, is_complete and 1 or 0, has_more, ids, changed } }
end

if operation == 'put' then
  local expected, above, kept, info, text = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]
  local current = redis.call('HGET', state, 'current')
  if expected ~= '' and expected ~= (current or '0') then
    return { 'conflict', current }
  end
  local latest = math.max(tonumber(redis.call('HGET', state, 'latest') or '0'), above) + 1
  local number = string.format('%.0f', latest)
  redis.call('HSET', state, 'latest', number, 'current', number)
  redis.call('HDEL', state, 'restored')
  redis.call('HSET', infos, number, info)
  redis.call('HSET', texts, number, text)
  drop_old(latest, tonumber(kept))
  publish(next_revision())
  return { 'ok', number }
end

-- The newest version of any instance wins. But if the store began again after the instance read it, the document of an
-- operator stays, because its number began again too.
if operation == 'restore' then
  local number, known, info, text = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
  local parts = redis.call('HMGET', state, 'current', 'latest', 'began', 'restored')
  local current, latest, began, restored = parts[1], tonumber(parts[2] or '0'), tonumber(parts[3] or '0'), parts[4]
  local is_of_operator = began > known and not restored
  if current and (is_of_operator or tonumber(current) >= tonumber(number)) then
    return { 'same', false }
  end
  if not current or began > known then
    redis.call('HSET', state, 'restored', '1')
  end
  pass_revision(known)
  redis.call('HSET', state, 'latest', string.format('%.0f', math.max(latest, tonumber(number))), 'current', number)
  redis.call('HSET', infos, number, info)
  redis.call('HSET', texts, number, text)
  publish(next_revision())
  return { 'ok', false }
end

-- A block that has changed since has a mark above the known revision. A removed block is empty here.
if operation == 'restore_blocks' then
  local known, most, restored, revision = tonumber(ARGV[3]), tonumber(ARGV[4]), {}, nil
  local parts = redis.call('HMGET', state, 'began', 'marked_since')
  local has_marks = known >= tonumber(parts[2] or '0') or known < tonumber(parts[1] or '0')
  pass_revision(known)
  for i = 5, #ARGV, 4 do
    local id, block = ARGV[i], ARGV[i + 3]
    local mark = redis.call('ZSCORE', revisions, id)
    if mark and tonumber(mark) <= known or not mark and block ~= '' and has_marks then
      revision = block == '' and remove_block(id, most) or add_block(id, ARGV[i + 1], ARGV[i + 2], block)
      restored[#restored + 1] = id
    end
  end
  if revision then
    publish(revision)
  end
  return { 'ok', restored }
end

if operation == 'put_block' then
  local id, until_at, is_of_penalty, block = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
  local now, most, most_of_penalties = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
  drop_ended(now)
  local before = redis.call('HGET', blocks, id)
  -- A penalty may not have heard of an operator's entry.
  if before and is_of_penalty == '1' and not redis.call('ZSCORE', penalties, id) then
    return { 'ok', before }
  end
  local is_full = redis.call('HLEN', blocks) >= most
    or is_of_penalty == '1' and redis.call('ZCARD', penalties) >= most_of_penalties
  if not before and is_full then
    local evicted = redis.call('ZRANGE', penalties, 0, 0)[1]
    if not evicted then
      return { 'full', false }
    end
    remove_block(evicted, most)
  end
  publish(add_block(id, until_at, is_of_penalty, block))
  return { 'ok', before }
end

if operation == 'remove_block' then
  local before = redis.call('HGET', blocks, ARGV[3])
  if before then
    publish(remove_block(ARGV[3], tonumber(ARGV[4])))
  end
  return { 'ok', before }
end

-- All instances that follow a file find its change, and a record is sent again after a lost answer. One record is enough.
if operation == 'record' then
  local record, kept, file = ARGV[3], tonumber(ARGV[4]), ARGV[5]
  if file and redis.call('HGET', state, 'file') == file then
    return { 'same', false }
  end
  for _, known in ipairs(redis.call('LRANGE', audit, 0, 99)) do
    if known == record then
      return { 'same', false }
    end
  end
  if file then
    redis.call('HSET', state, 'file', file)
  end
  redis.call('LPUSH', audit, record)
  redis.call('LTRIM', audit, 0, kept - 1)
  return { 'ok', false }
end

return redis.error_reply('unknown operation ' .. operation)
