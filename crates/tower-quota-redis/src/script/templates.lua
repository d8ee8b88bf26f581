-- A plain template has its limits and its parts, which plain.lua describes. The model reads the charges.
local templates = {}
for i = 1, template_count do
  local is_plain, operation, taken_at, clients, places, charge_count, length, start = unpack_from(TEMPLATE, request, position)
  templates[i] = {
    is_plain = is_plain == 1,
    operation = operation,
    taken_at = taken_at,
    clients = clients,
    -- The keys of a decision: the clients, and the set of each charge with holds.
    places = places,
    charge_count = charge_count,
    start = start,
  }
  position = start + length
end

-- The template of every decision, followed by the keys.
local decisions = { unpack_from('<' .. rep('H', (#request - position + 1) / 2), request, position) }

-- The message of the server if it refused a command of the present decision.
local refused

-- The instants at which changed entries are full. `states` has the entry, or false for a full entry.
local full_at = {}

