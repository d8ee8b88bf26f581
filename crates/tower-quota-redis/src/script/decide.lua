-- Gives a charge the methods of its quota, and a calendar quota the window at `now`.
local function prepare_charge(charge, now)
  charge.is_report = has(charge.flags, REPORTED + REPORTED_UNTIL_DEBT)
  setmetatable(charge, ALGORITHMS[charge.kind])
  if charge.strikes then
    charge.strikes.entry = charge.entry
    setmetatable(charge.strikes, bucket)
  end
  for _, window in ipairs(charge.windows or {}) do
    if window.cost <= now then
      charge.pace, charge.offset, charge.head = window.pace, window.offset, window.head
    end
  end
end

-- Reads the states of a charge with holds, so that an error precedes the first write. Keeps the number of holds if the
-- set did not have those of the entry, or if reading the units of the expired holds took long.
local function read_holds(charge, now)
  local slot = slot_for(charge, now)
  local state = slot and slot.quota:advance(slot.state, now)
  if state and (state.is_recounted or #(state.expired or {}) > MOST_REREAD) then
    trim(state)
    state.is_recounted, slot.full_at = nil, state.full_at
    slot.bytes = slot_bytes(slot.quota, state)
    charge.entry.is_changed = true
  end
end

-- Judges the charges of a request. All charges that accept a partial grant get the same number of units.
local function judge_all(operation, charges, now)
  local together = math.huge
  for _, charge in ipairs(charges) do
    charge.is_partial = charge.cost > 0 and has(charge.flags, AT_MOST)
    if charge.is_partial then
      charge.units = min(charge.cost, max(left(charge, now), 0))
      -- Shadow charges do not reduce the units of the others.
      if not has(charge.flags, SHADOW) then
        together = min(together, charge.units)
      end
    end
  end
  for _, charge in ipairs(charges) do
    if charge.is_partial then
      charge.units = max(min(charge.units, together), 1)
    elseif operation == PEEK then
      charge.units = max(charge.units, 1)
    end
    charge.outcome, charge.micros = judge(charge, now)
  end
end

-- Applies an operation to the state of a charge. Returns the taken units.
local function apply(template, charge, now)
  local operation, units, taken_at = template.operation, charge.units, template.taken_at
  if operation == PEEK then
    return 0
  elseif operation == RESET then
    forget(charge.entry, charge.id)
    forget(charge.entry, charge.other_id)
    forget(charge.entry, charge.strikes_id)
  elseif operation == RENEW then
    local lost_units = has(charge.flags, FORCED) and units or 0
    if charge.kind == CONCURRENT and (lost_units > 0 or may_refund(charge, taken_at, now)) then
      return edit(charge, now, 'renew', taken_at, lost_units)
    end
  elseif operation == REFUND then
    if units > 0 and may_refund(charge, taken_at, now) then
      local before = charge:balance(state_for(charge, now), now)
      edit(charge, now, 'refund', units, taken_at, has(charge.flags, REFUNDABLE))
      return max(charge:balance(state_for(charge, now), now) - before, 0)
    end
  elseif units > 0 and not charge.is_left_out then
    local most
    if has(charge.flags, FORCED) then
      if charge.kind == TOKEN_BUCKET then
        most = charge.capacity * charge.grain + charge.max_wait * charge.pace
      elseif charge.kind ~= CONCURRENT then
        local room = charge:balance(state_for(charge, now), now) + charge.max_wait
        units = min(units, max(room, 0))
      end
    end
    return edit(charge, now, 'take', units, has(charge.flags, REFUNDABLE), most)
  elseif units > 0 and has(charge.flags, COUNTS_REFUSALS) then
    edit(charge, now, 'penalise', units, 0)
  elseif (units > 0 or charge.is_report) and needs_conversion(charge, now, needed(charge)) then
    -- The promised retry time assumes the new rate.
    edit(charge, now)
  end
  return 0
end

-- Adds a strike if the limit of the charge refuses.
local function strike(operation, charge, now)
  local strikes, counts = charge.strikes, operation == CHECK or operation == REFUSED_ALREADY
  if not (strikes and counts and charge.units > 0) then
    return
  elseif charge.outcome ~= ADMIT then
    edit(strikes, now, 'penalise', 1, strikes.cost)
  elseif needs_conversion(strikes, now, 0) then
    edit(strikes, now)
  end
end

-- Decides all charges of a request, and returns the reply. A shadow is taken if the shadow fits and all other charges
-- are taken.
local function decide(template, place)
  template.charges = template.charges or charges_of(template)
  local operation, charges, now, entries = template.operation, template.charges, clock, {}
  local takes, first_change = operation == CHECK or operation == CHARGE_ANYWAY, 0
  local forces = takes or operation == REFUSED_ALREADY or operation == RENEW
  for _, charge in ipairs(charges) do
    if forces and charge.kind == CONCURRENT and has(charge.flags, FORCED) then
      -- A refused request takes a forced hold too, so its instant is needed before the judgement.
      first_change = 1
    end
  end
  for i = 1, template.clients do
    entries[i] = load_entry(states[decisions[place + i]])
    now = max(now, entries[i].at + first_change)
  end
  if first_change == 1 and template.taken_at <= border then
    -- Only a renewal has the instant of a hold here. A lost entry was as late as its holds.
    now = max(now, template.taken_at)
  end
  for _, charge in ipairs(charges) do
    charge.entry, charge.units, charge.outcome, charge.micros = entries[charge.client], charge.cost, ADMIT, 0
    charge.is_converted = false
    charge.key = charge.place and KEYS[decisions[place + charge.place]]
    prepare_charge(charge, now)
  end
  if template.places > template.clients and operation ~= RESET then
    for _, charge in ipairs(charges) do
      if charge.place then
        read_holds(charge, now)
      end
      left(charge, now)
    end
  end
  local is_refused, has_hold = operation == REFUSED_ALREADY, false
  if is_refused or operation == CHECK or operation == PEEK then
    judge_all(operation, charges, now)
  end
  for _, charge in ipairs(charges) do
    is_refused = is_refused or charge.outcome ~= ADMIT and not has(charge.flags, SHADOW)
    has_hold = has_hold or charge.kind == CONCURRENT
  end
  if has_hold and not is_refused and takes then
    -- Use an instant after all earlier changes, so that the instant identifies the hold.
    for _, entry in ipairs(entries) do
      now = max(now, entry.at + 1)
    end
  end

  for _, charge in ipairs(charges) do
    charge.is_left_out = (is_refused or charge.outcome ~= ADMIT) and not has(charge.flags, FORCED)
    if charge.is_report then
      charge.units = 0
    end
    charge.taken = apply(template, charge, now)
    strike(operation, charge, now)
  end

  local reply, converted = { pack(HEADER, DECIDED, now) }, 0
  for i, charge in ipairs(charges) do
    local balance, reset = left(charge, now)
    if charge.is_left_out and (charge.strikes or has(charge.flags, COUNTS_REFUSALS)) then
      -- A counted refusal may have changed the outcome, and left fewer units for a partial grant.
      if charge.is_partial then
        charge.units = min(charge.units, max(balance, 1))
      end
      charge.outcome, charge.micros = judge(charge, now)
    end
    reply[i + 1] = pack('<I7I7BI7I7', balance + BALANCE_OFFSET, reset, charge.outcome, charge.micros, charge.taken)
    if charge.is_converted then
      converted = converted + 2 ^ (i - 1)
    end
  end
  if converted > 0 then
    reply[1] = pack('<BI4', CONVERTED, converted) .. reply[1]
  end
  for _, entry in ipairs(entries) do
    local bytes = is_refused and operation == CHECK and encode(entry, now, true) or ''
    if #bytes > MOST_EXPLAINED then
      bytes = ''
    end
    reply[#reply + 1] = pack('<H', #bytes) .. bytes
  end
  -- An error before this point has changed no entry.
  for i, entry in ipairs(entries) do
    if entry.is_changed then
      local client, bytes, full = decisions[place + i], encode(entry, now)
      states[client], full_at[client] = #bytes > 8 and bytes, full
    end
  end
  return concat(reply)
end

