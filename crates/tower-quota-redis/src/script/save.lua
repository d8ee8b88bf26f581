-- Writes what has changed. Commands that may need memory come first: a server without any refuses the first of them,
-- and nothing is done.
if changed_count > 0 then
  local function milliseconds_until(instant)
    return string.format('%.0f', max(div_ceil(max(instant - now, 0), 1000), shortest_lifetime))
  end

  local into_hash, last, has_strings = { this_hash }, 1, false
  -- What leaves a place, which is rare: tables are only made where there is something to put into them.
  local out_of_hash, out_of_last, strings_gone
  for i = 1, changed_count do
    local subject = changed[i]
    local state, was = states[subject], place[subject]
    local is_short = state and whole_at[subject] <= border
    if is_short then
      into_hash[last + 1], into_hash[last + 2] = subject_ids[subject], state
      last = last + 2
    else
      has_strings = has_strings or state
    end
    if not is_short and was == nil then
      out_of_hash = out_of_hash or { this_hash }
      out_of_hash[#out_of_hash + 1] = subject_ids[subject]
    end
    if was == IN_LAST_HASH then
      out_of_last = out_of_last or { last_hash }
      out_of_last[#out_of_last + 1] = subject_ids[subject]
    elseif was == IN_STRING and (is_short or not state) then
      strings_gone = strings_gone or {}
      strings_gone[#strings_gone + 1] = string_of(subject)
    end
  end

  if last > 1 then
    if not is_mortal then
      into_hash[last + 1], into_hash[last + 2] = '', '1'
      last = last + 2
    end
    redis.call('HSET', unpack(into_hash, 1, last))
    if not is_mortal then
      -- It is new. The extra generation is for clocks: this one and the one that expires keys may differ a little.
      redis.call('PEXPIRE', this_hash, milliseconds_until((generation + 3) * GENERATION))
    end
  end
  if has_strings then
    for i = 1, changed_count do
      local subject = changed[i]
      if states[subject] and whole_at[subject] > border then
        redis.call('SET', string_of(subject), states[subject], 'PX', milliseconds_until(whole_at[subject]))
      end
    end
  end

  local into_quotas
  if generation ~= recorded then
    into_quotas = { KEYS[1], 'generation', string.format('%d', generation) }
  end
  for i = 1, definition_count do
    if not definitions[i + 1] then
      into_quotas = into_quotas or { KEYS[1] }
      into_quotas[#into_quotas + 1] = definition_fields[i]
      into_quotas[#into_quotas + 1] = definition_numbers[i]
    end
  end
  if into_quotas then
    redis.call('HSET', unpack(into_quotas))
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', QUOTAS_LIFETIME))
  end

  if out_of_hash then
    redis.call('HDEL', unpack(out_of_hash))
  end
  if out_of_last then
    redis.call('HDEL', unpack(out_of_last))
  end
  if strings_gone then
    redis.call('DEL', unpack(strings_gone))
  end
  if generation ~= recorded and recorded > 0 then
    -- What lies there is whole.
    redis.call('UNLINK', base .. string.format('%d', recorded - 1))
    if recorded < generation - 1 then
      redis.call('UNLINK', base .. string.format('%d', recorded))
    end
  end
end
