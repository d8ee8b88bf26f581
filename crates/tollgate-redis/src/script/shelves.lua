-- Where subjects are kept. `BASE` is what KEYS[1] begins with.
--
--   BASE:GENERATION  a hash of subjects that will be whole before the next generation ends. A generation is a minute.
--   BASE:SUBJECT     a string of its own for one that takes longer.
--   BASE:quotas      a hash: the newest generation in which something was written, and the quotas by their numbers.
--
-- A subject is in one of three places: the hash of this generation, that of the one before, its own string. Reading
-- moves nothing; writing moves it to where it now belongs. The hash of two generations ago holds only subjects that are
-- whole, which is the same as none at all: it is unlinked when a new generation begins.
local GENERATION = 60000000
-- Quotas are kept for this long after something was last written: 400 days, in milliseconds.
local QUOTAS_LIFETIME = 34560000000

local base = string.sub(KEYS[1], 1, -7)

local function hash_of(generation)
  return base .. string.format('%.0f', generation)
end

local function string_of(i)
  if id_width == 0 then
    return base .. subject_ids[i]
  end
  return base .. string.format('%08x%08x%08x', unpack_from('>I4I4I4', subject_ids[i]))
end

local definitions = redis.call('HMGET', KEYS[1], 'generation', unpack(definition_fields))
local recorded = tonumber(definitions[1] or 0)
-- Never below the newest one, so that a clock that runs backwards changes nothing.
local generation = max(recorded, div(now, GENERATION))
local this_hash, last_hash = hash_of(generation), hash_of(generation - 1)

-- A subject that is whole by then may lie in the hash of this generation. While the clock is far behind the newest
-- generation, that hash would take too long to be unlinked: then everything has a string, and a lifetime, of its own.
local border = (generation + 2) * GENERATION
if generation > div(now, GENERATION) + 1 then
  border = -1
end

-- Where a subject was found; nothing: in this generation's hash.
local NOWHERE, IN_LAST_HASH, IN_STRING = 0, 1, 2
local place, missed = {}, {}
-- What is stored of each subject: false if nothing is.
local states = {}

-- Looks for the missed subjects elsewhere.
local function find(command, key, name_of, found_there)
  local names = {}
  for i = 1, #missed do
    names[i] = name_of(missed[i])
  end
  local found
  if key then
    found = redis.call(command, key, unpack(names))
  else
    found = redis.call(command, unpack(names))
  end
  local still_missed = {}
  for i = 1, #missed do
    local subject = missed[i]
    if found[i] then
      states[subject], place[subject] = found[i], found_there
    else
      still_missed[#still_missed + 1] = subject
    end
  end
  missed = still_missed
end

local all_missed = false
if subject_count > 0 then
  states = redis.call('HMGET', this_hash, unpack(subject_ids))
  for i = 1, subject_count do
    if not states[i] then
      missed[#missed + 1] = i
    end
  end
  all_missed = #missed == subject_count
  if #missed > 0 then
    find('HMGET', last_hash, function(subject)
      return subject_ids[subject]
    end, IN_LAST_HASH)
  end
  if #missed > 0 then
    find('MGET', nil, string_of, IN_STRING)
    for i = 1, #missed do
      place[missed[i]] = NOWHERE
    end
  end
end

-- When each changed subject will be whole, and the changed ones in order.
local whole_at, changed = {}, {}

local function keep(subject, state, whole)
  if not whole_at[subject] then
    changed[#changed + 1] = subject
  end
  states[subject], whole_at[subject] = state, whole
end

local function milliseconds_until(instant)
  return string.format('%.0f', max(div_ceil(max(instant - now, 0), 1000), shortest_lifetime))
end

local function call_if_any(command, arguments, least)
  if #arguments > least then
    redis.call(command, unpack(arguments))
  end
end

-- Commands that may need memory come first: a server without any refuses the first of them, and nothing is done.
local function save()
  local into_hash, out_of_hash, out_of_last = { this_hash }, { this_hash }, { last_hash }
  local strings_gone = {}
  for i = 1, #changed do
    local subject = changed[i]
    local state, was = states[subject], place[subject]
    local is_short = state and whole_at[subject] <= border
    if is_short then
      into_hash[#into_hash + 1] = subject_ids[subject]
      into_hash[#into_hash + 1] = state
    elseif was == nil then
      out_of_hash[#out_of_hash + 1] = subject_ids[subject]
    end
    if was == IN_LAST_HASH then
      out_of_last[#out_of_last + 1] = subject_ids[subject]
    elseif was == IN_STRING and (is_short or not state) then
      strings_gone[#strings_gone + 1] = string_of(subject)
    end
  end
  call_if_any('HSET', into_hash, 1)
  for i = 1, #changed do
    local subject = changed[i]
    if states[subject] and whole_at[subject] > border then
      redis.call('SET', string_of(subject), states[subject], 'PX', milliseconds_until(whole_at[subject]))
    end
  end
  if #into_hash > 1 and all_missed and redis.call('PTTL', this_hash) < 0 then
    -- It is new. The extra generation is for clocks: this one and the one that expires keys may differ a little.
    redis.call('PEXPIRE', this_hash, milliseconds_until((generation + 3) * GENERATION))
  end

  local into_quotas = { KEYS[1] }
  if generation ~= recorded then
    into_quotas[2], into_quotas[3] = 'generation', string.format('%.0f', generation)
  end
  for i = 1, definition_count do
    if not definitions[i + 1] then
      into_quotas[#into_quotas + 1] = definition_fields[i]
      into_quotas[#into_quotas + 1] = definition_numbers[i]
    end
  end
  if #into_quotas > 1 then
    redis.call('HSET', unpack(into_quotas))
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', QUOTAS_LIFETIME))
  end

  call_if_any('HDEL', out_of_hash, 1)
  call_if_any('HDEL', out_of_last, 1)
  call_if_any('DEL', strings_gone, 0)
  if generation ~= recorded and recorded > 0 then
    redis.call('UNLINK', hash_of(recorded - 1))
    if recorded < generation - 1 then
      redis.call('UNLINK', hash_of(recorded))
    end
  end
end

