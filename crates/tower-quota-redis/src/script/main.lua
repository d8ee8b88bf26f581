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

-- Writes what has changed. A server that may not write, or has no memory, refuses the first write, and nothing is done.
local keys, deleted, write, refusal = KEYS, nil, redis.pcall, nil
for client = 1, #keys do
  local full = full_at[client]
  if full then
    local key, state = keys[client], states[client]
    if state then
      -- A tenth faster than SET with PX, whose options Redis would read.
      local answer = write('PSETEX', key, lifetimes[full] or lifetime_until(full), state)
      refusal = answer.err
      if refusal then
        break
      end
      write = call
    else
      deleted = deleted or {}
      deleted[#deleted + 1] = key
    end
  end
end
if deleted and not refusal then
  local answer = write('DEL', unpack(deleted))
  refusal = type(answer) == 'table' and answer.err
end
if refusal then
  -- Decisions that change nothing, such as refusals, hold all the same. The others fail with the words of the server.
  -- Before version 7, a server puts the line of the script in front of its words, and a line break behind them.
  local words = string.gsub(refusal, '^@user_script: %d+: ', '')
  words = string.sub(string.match(words, '^%-?(.-)%s*$'), 1, 255)
  local failure = string.char(NOT_WRITTEN, #words) .. words
  place = 1
  for refused = 1, decision_count do
    local clients = templates[decisions[place]].clients
    for client = place + 1, place + clients do
      if full_at[decisions[client]] then
        replies[refused] = failure
      end
    end
    place = place + 1 + clients
  end
end
return table.concat(replies)
