-- Returns the reply to a decision that the server refused to write. Before version 7, a server adds the line of the
-- script to the message, and a line break at the end.
local function not_written(refusal)
  local words = string.gsub(refusal, '^@user_script: %d+: ', '')
  words = sub(string.match(words, '^%-?(.-)%s*$'), 1, 255)
  return char(NOT_WRITTEN, #words) .. words
end

-- Makes the decisions in order. A decision sees the changes of all earlier decisions.
local replies, slow, place = {}, nil, 1
for number = 1, decision_count do
  local template = templates[decisions[place]]
  refused = nil
  local reply = template.is_plain and decide_plain(template, place, slow)
  if not reply and not slow then
    -- The definition takes longer than a decision, so a call defines the slow functions only if necessary.
    slow = (function()
      --SLOW
      return { scan = scan, join = join, decide = decide }
    end)()
    reply = template.is_plain and decide_plain(template, place, slow)
  end
  if not reply then
    local is_decided
    is_decided, reply = pcall(slow.decide, template, place)
    if not is_decided then
      reply = refused and not_written(refused) or char(UNREADABLE)
    end
  end
  replies[number] = reply
  place = place + 1 + template.places
end

-- Writes the changed entries. A read-only server, or a server without free memory, refuses the first write.
local refusal, printed, lifetime
for client, full in pairs(full_at) do
  local key, state, answer = KEYS[client], states[client], nil
  if state then
    -- Redis would print a number with all digits. Printing is slow, so new clients with the same instant share a text.
    if full ~= printed then
      local micros = full - clock
      printed, lifetime = full, string.format('%d', max((micros + -micros % 1000) / 1000, shortest_lifetime))
    end
    -- A tenth faster than SET with its options.
    answer = redis.pcall('PSETEX', key, lifetime, state)
  else
    answer = redis.pcall('DEL', key)
  end
  refusal = type(answer) == 'table' and answer.err
  if refusal then
    break
  end
  full_at[client] = nil
end
if refusal then
  -- Decisions remain valid if all changes are written, or without changes. Other decisions fail with the message of the
  -- server.
  place = 1
  for number = 1, decision_count do
    local template = templates[decisions[place]]
    for client = place + 1, place + template.clients do
      if full_at[decisions[client]] then
        replies[number] = not_written(refusal)
      end
    end
    place = place + 1 + template.places
  end
end
return concat(replies)
