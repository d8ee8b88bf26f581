-- Decides one decision after the other, each on what those before it have left.
local replies, decide, place = {}, nil, 1
for i = 1, decision_count do
  local template = templates[decisions[place]]
  local is_sound, reply = false, nil
  if template.is_plain then
    -- It fails only while it reads: nothing is kept by then.
    is_sound, reply = pcall(decide_buckets, template, place)
  end
  if not (is_sound and reply) then
    decide = decide or model()
    is_sound, reply = pcall(decide, template, place)
    if not is_sound then
      reply = string.char(UNREADABLE)
    end
  end
  replies[i] = reply
  place = place + 1 + template.clients
end

-- Writes what has changed. What may need memory comes first: a server without any refuses that, and nothing is done.
local deleted
for client, key in ipairs(KEYS) do
  local full = full_at[client]
  if full then
    local state = states[client]
    if state then
      local lifetime = div_ceil(full - clock, 1000)
      if lifetime < shortest_lifetime then
        lifetime = shortest_lifetime
      end
      call('SET', key, state, 'PX', lifetime)
    else
      deleted = deleted or {}
      deleted[#deleted + 1] = key
    end
  end
end
if deleted then
  call('DEL', unpack(deleted))
end
return table.concat(replies)
