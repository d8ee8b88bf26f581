-- Decides one decision after the other, each on what those before it have left.
local is_confused
for i = 1, definition_count do
  local stored = definitions[i + 1]
  if stored and stored ~= definition_numbers[i] then
    -- Another quota under the same number: odds of one in 2^38 for any two. The long way says who is concerned.
    is_confused = is_confused or {}
    is_confused[i] = true
  end
end

local replies, last, counted = {}, 0, {}
local decide
local word = 1
for _ = 1, decision_count do
  local template = templates[decisions[word]]
  for j = 1, template.subjects do
    counted[j] = decisions[word + j]
  end
  word = word + 1 + template.subjects

  local verdict, answer
  if template.is_plain and not is_confused then
    verdict, answer = decide_plain(template, counted, now)
  end
  if not verdict then
    decide = decide or model(is_confused or {})
    local is_sound
    is_sound, answer = pcall(decide, template, counted)
    if is_sound then
      verdict = DECIDED
    else
      verdict, answer = SENSELESS, ''
    end
  end
  replies[last + 1], replies[last + 2] = verdict, answer
  last = last + 2
end

