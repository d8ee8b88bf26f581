-- Decides one decision after the other, each on what those before it have left. The first path fails only while it
-- reads, and the model keeps what it has changed at its end: of a decision that fails nothing is kept.
local replies, decide = {}, nil
local number, place = 1, 1

local function decide_rest()
  while number <= decision_count do
    local template = templates[decisions[place]]
    local reply = template.is_plain and decide_buckets(template, place)
    if not reply then
      decide = decide or model()
      reply = decide(template, place)
    end
    replies[number] = reply
    number, place = number + 1, place + 1 + template.clients
  end
end

while not pcall(decide_rest) do
  -- What is stored of a client makes no sense, at least to the first path.
  decide = decide or model()
  local template = templates[decisions[place]]
  local is_sound, reply = pcall(decide, template, place)
  replies[number] = is_sound and reply or string.char(UNREADABLE)
  number, place = number + 1, place + 1 + template.clients
end

-- Writes what has changed. What may need memory comes first: a server without any refuses that, and nothing is done.
local format, deleted, last_lifetime, lifetime_text = string.format, nil, nil, nil
for client = 1, #KEYS do
  local full = full_at[client]
  if full then
    local key, state = KEYS[client], states[client]
    if state then
      local lifetime = full - clock
      lifetime = (lifetime + -lifetime % 1000) / 1000
      if lifetime < shortest_lifetime then
        lifetime = shortest_lifetime
      end
      -- Many clients have the same. As text: Redis would print a number with all digits that it may have.
      if lifetime ~= last_lifetime then
        last_lifetime, lifetime_text = lifetime, format('%d', lifetime)
      end
      -- A tenth faster than SET with PX, whose options Redis would read.
      call('PSETEX', key, lifetime_text, state)
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
