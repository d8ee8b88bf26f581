-- Returns the charges of a template, for the model.
local function charges_of(template)
  local charges, position, place = {}, template.start, template.clients
  for _ = 1, template.charge_count do
    local client, flags, cost, max_wait, id, other_id, strikes_id, kind, capacity, grain, pace, offset, head, behind =
      unpack_from(CHARGE, request, position)
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
      place = place + 1
      charge.place = place
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
  return charges
end
