local call = redis.call

local request = ARGV[1]
local is_given, clock, template_count, decision_count, position = unpack_from('<BI7HH', request)

local templates = {}
for i = 1, template_count do
  local is_plain, operation, taken_at, clients, charge_count, start = unpack_from('<BBI7HH', request, position)
  local charges = {}
  templates[i] = {
    is_plain = is_plain == 1,
    operation = operation,
    taken_at = taken_at,
    clients = clients,
    -- The keys of a decision: the clients, and the set of each charge with holds.
    places = clients,
    charges = charges,
  }
  position = start
  for _ = 1, charge_count do
    local client, flags, cost, max_wait, id, other_id, strikes_id, kind, capacity, grain, pace, offset, head, behind =
      unpack_from('<HHI7I7I4I4I4BI7I7I7I7Bc0', request, position)
    -- The fields from `kind` to `offset` are the charge's quota.
    local charge = {
      client = client,
      flags = flags,
      cost = cost,
      max_wait = max_wait,
      id = id,
      other_id = other_id,
      strikes_id = strikes_id,
      kind = kind,
      capacity = capacity,
      grain = grain,
      pace = pace,
      offset = offset,
      head = head,
    }
    position = behind
    if kind == CONCURRENT then
      templates[i].places = templates[i].places + 1
      charge.place = templates[i].places
    end
    local last = charges[#charges]
    if flags == PENALTY then
      last.strikes = charge
    elseif flags == WINDOW then
      last.windows = last.windows or {}
      table.insert(last.windows, charge)
    else
      charges[#charges + 1] = charge
    end
  end
end

-- The template of every decision, followed by the keys.
local decisions = { unpack_from('<' .. rep('H', (#request - position + 1) / 2), request, position) }

-- A test gives the instant. The clock of the test differs from the server's clock, so the server keeps the entries for
-- a minute at least.
local shortest_lifetime = 60000
if is_given == 0 then
  local time = call('TIME')
  clock = tonumber(time[1]) * 1000000 + tonumber(time[2])
  shortest_lifetime = 1
end
-- A change after the border may come from a wrong clock.
local border = clock + TRUSTED_LEAD

-- The stored entries of the clients, or false. Redis answers nothing for sets.
local states = call('MGET', unpack(KEYS))

-- The message of the server if it refused a command of the present decision.
local refused

-- The instants at which changed entries are full. `states` has the entry, or false for a full entry.
local full_at = {}

-- Returns the milliseconds until an instant as text. Redis would print a number with all digits. Printing is slow,
-- so new clients with the same instant share the text.
local printed, lifetime
local function lifetime_until(full)
  if full ~= printed then
    printed, lifetime = full, string.format('%d', max(div_ceil(full - clock, 1000), shortest_lifetime))
  end
  return lifetime
end

