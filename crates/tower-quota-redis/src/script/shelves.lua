-- Where subjects are kept. `BASE` is what KEYS[1] begins with.
--
--   BASE:GENERATION  a hash of subjects that will be whole before the next generation ends. A generation is a minute. Its
--                    field of no name says that it has been given a lifetime.
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

local function string_of(i)
  if id_width == 0 then
    return base .. subject_ids[i]
  end
  return base .. string.format('%08x%08x%08x', unpack_from('>I4I4I4', subject_ids[i]))
end

local definitions = redis.call('HMGET', KEYS[1], 'generation', unpack(definition_fields))
local recorded = tonumber(definitions[1] or 0)
-- Never below the newest one, so that a clock that runs backwards changes nothing.
local present = div(now, GENERATION)
local generation = max(recorded, present)
local this_hash, last_hash = base .. string.format('%d', generation), base .. string.format('%d', generation - 1)

-- A subject that is whole by then may lie in the hash of this generation. While the clock is far behind the newest
-- generation, that hash would take too long to be unlinked: then everything has a string, and a lifetime, of its own.
local border = (generation + 2) * GENERATION
if generation > present + 1 then
  border = -1
end

-- Where a subject was found; nothing: in this generation's hash.
local NOWHERE, IN_LAST_HASH, IN_STRING = 0, 1, 2
local place = {}
-- What is stored of each subject: false if nothing is.
local states = {}
local missed, missed_ids, missed_count = {}, {}, 0

local is_mortal
if subject_count > 0 then
  subject_ids[subject_count + 1] = ''
  states = redis.call('HMGET', this_hash, unpack(subject_ids))
  is_mortal, states[subject_count + 1] = states[subject_count + 1], nil
  for i = 1, subject_count do
    if not states[i] then
      missed_count = missed_count + 1
      missed[missed_count], missed_ids[missed_count] = i, subject_ids[i]
    end
  end
end

if missed_count > 0 then
  local found = redis.call('HMGET', last_hash, unpack(missed_ids))
  local strings, still_missed, count = {}, {}, 0
  for i = 1, missed_count do
    local subject = missed[i]
    if found[i] then
      states[subject], place[subject] = found[i], IN_LAST_HASH
    else
      count = count + 1
      strings[count], still_missed[count] = string_of(subject), subject
    end
  end
  if count > 0 then
    found = redis.call('MGET', unpack(strings))
    for i = 1, count do
      local subject = still_missed[i]
      states[subject], place[subject] = found[i], found[i] and IN_STRING or NOWHERE
    end
  end
end

