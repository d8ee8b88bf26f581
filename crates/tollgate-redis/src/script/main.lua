-- Decides one decision after the other, each on what those before it have left.
local replies, counted = {}, {}
local decide
local byte = string.byte

for i = 1, template_count do
  local template = templates[i]
  if template.is_plain then
    prepare(template)
  end
  for _, charge in ipairs(template.charges) do
    local stored = definitions[charge.definition + 1]
    -- Another quota under the same number: odds of one in 2^38 for any two.
    template.is_confused = template.is_confused or stored and stored ~= definition_numbers[charge.definition]
  end
end

for i = 1, decision_count do
  local low, high = byte(request, position, position + 1)
  local template = templates[low + high * 256]
  position = position + 2
  for j = 1, template.subjects do
    low, high = byte(request, position, position + 1)
    counted[j] = low + high * 256
    position = position + 2
  end

  local reply
  if template.is_plain and not template.is_confused then
    reply = decide_plain(template, counted, now)
  end
  if not reply then
    decide = decide or model()
    local is_sound, answer = pcall(decide, template, counted)
    reply = is_sound and answer or '\3'
  end
  replies[i] = reply
end

if #changed > 0 then
  save()
end
return table.concat(replies)
