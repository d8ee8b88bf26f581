-- A template's charges in full.
local function charges_of(template)
  if not template.charges then
    local charges, position = {}, template.start
    for _ = 1, template.charge_count do
      local client, flags, cost, max_wait, id, strikes_id, kind, capacity, grain, pace, offset, head, behind =
        unpack_from(CHARGE, request, position)
      position = behind
      local counter = { id = id, head = head, quota = quota_of(kind, capacity, grain, pace, offset) }
      if has(flags, PENALTY) then
        counter.most_debt, charges[#charges].strikes = cost, counter
      elseif has(flags, LATER_WINDOW) then
        local charge = charges[#charges]
        charge.windows = charge.windows or { { from = 0, quota = charge.quota, head = charge.head } }
        charge.windows[#charge.windows + 1] = { from = cost, quota = counter.quota, head = head }
      else
        counter.client, counter.flags, counter.cost = client, flags, cost
        counter.max_wait, counter.strikes_id = max_wait, strikes_id
        charges[#charges + 1] = counter
      end
    end
    template.charges = charges
  end
  return template.charges
end

-- Counts the charges of calendar quotas by their windows at `now`.
local function pick_windows(charges, now)
  for _, charge in ipairs(charges) do
    for i = 1, charge.windows and #charge.windows or 0 do
      local window = charge.windows[i]
      if window.from <= now then
        charge.quota, charge.head = window.quota, window.head
      end
    end
  end
end

local function has_hold(charges)
  for _, charge in ipairs(charges) do
    if charge.quota.kind == HOLDS then
      return true
    end
  end
end

local function is_left_out(charge, refused, verdict)
  return (refused or verdict ~= ADMIT) and not has(charge.flags, FORCED)
end

-- How many units each charge asks for: its cost, or, of those that take at most that, as many as all of them have left.
local function units_of(operation, charges, entries, now, judges)
  local units, together = {}, nil
  for i, charge in ipairs(charges) do
    units[i] = charge.cost
    if judges and charge.cost > 0 and has(charge.flags, AT_MOST) then
      units[i] = min(charge.cost, max(entry.left(entries[charge.client], charge, now), 0))
      -- Shadow charges do not reduce what the others take.
      if not has(charge.flags, SHADOW) then
        together = min(together or units[i], units[i])
      end
    end
  end
  for i, charge in ipairs(charges) do
    if judges and charge.cost > 0 and has(charge.flags, AT_MOST) then
      units[i] = max(min(units[i], together or units[i]), 1)
    elseif operation == PEEK then
      units[i] = max(units[i], 1)
    end
  end
  return units
end

-- Takes from what a charge's limit counts, or gives back. Returns the units taken.
local function change(counted, charge, units, template, stays_out, now)
  local operation, counts_refusals = template.operation, has(charge.flags, COUNTS_REFUSALS)
  if operation == RESET then
    entry.forget(counted, charge.id)
    entry.forget(counted, charge.strikes_id)
  elseif operation == RENEW then
    if charge.quota.kind == HOLDS and entry.may_refund(counted, charge, template.taken_at, now) then
      return entry.edit(counted, charge, now, renew, template.taken_at)
    end
  elseif operation == PEEK or units == 0 then
    return 0
  elseif operation == REFUND then
    if entry.may_refund(counted, charge, template.taken_at, now) then
      local give_back = has(charge.flags, REFUNDABLE) and refund_prepared or refund
      entry.edit(counted, charge, now, give_back, units, template.taken_at)
    end
  elseif not stays_out then
    return entry.edit(counted, charge, now, has(charge.flags, REFUNDABLE) and take_watched or take, units)
  elseif counts_refusals then
    entry.edit(counted, charge, now, penalise, units)
  elseif entry.needs_conversion(counted, charge, now) then
    entry.edit(counted, charge, now)
  end
  return 0
end

-- Adds a strike if this limit refuses: refusals by other limits do not count.
local function strike(counted, charge, units, operation, refuses, now)
  local strikes, counts = charge.strikes, operation == CHECK or operation == REFUSED_ALREADY
  if not (strikes and counts and units > 0) then
    return
  elseif refuses then
    entry.edit(counted, strikes, now, bucket.strike, strikes.most_debt)
  elseif entry.needs_conversion(counted, strikes, now) then
    entry.edit(counted, strikes, now)
  end
end

-- Decides all charges of a request: all are taken, or none. A refused request and a peek leave the entries as they
-- were, but that states counted by another quota are converted by a request. A shadow charge is taken if the others are
-- and it fits itself. Returns the reply.
local function decide(template, place)
  local operation, charges, now = template.operation, charges_of(template), clock
  local judges = operation == CHECK or operation == REFUSED_ALREADY or operation == PEEK
  local entries = {}
  for i = 1, template.clients do
    entries[i] = entry.load(states[decisions[place + i]])
    now = max(now, entries[i].at)
  end
  pick_windows(charges, now)

  local units = units_of(operation, charges, entries, now, judges)
  local verdicts, refused = {}, operation == REFUSED_ALREADY
  for i, charge in ipairs(charges) do
    local verdict, micros = ADMIT, 0
    if judges then
      verdict, micros = entry.judge(entries[charge.client], charge, units[i], now)
    end
    verdicts[i] = { verdict, micros }
    refused = refused or verdict ~= ADMIT and not has(charge.flags, SHADOW)
  end

  if not refused and (operation == CHECK or operation == CHARGE_ANYWAY) and has_hold(charges) then
    -- The instant of a hold is later than all earlier changes, so that it identifies the hold.
    for _, counted in ipairs(entries) do
      now = max(now, counted.at + 1)
    end
  end

  local taken = {}
  for i, charge in ipairs(charges) do
    local counted = entries[charge.client]
    local stays_out = is_left_out(charge, refused, verdicts[i][1])
    if is_report(charge) then
      units[i] = 0
    end
    taken[i] = change(counted, charge, units[i], template, stays_out, now)
    strike(counted, charge, units[i], operation, verdicts[i][1] ~= ADMIT, now)
  end
  local longest = {}
  for i, counted in ipairs(entries) do
    if counted.is_changed then
      longest[i] = entry.settle(counted, now)
    end
  end

  local is_explained = refused and operation == CHECK
  local reply = { pack(HEADER, is_explained and WITH_ENTRIES or DECIDED, now) }
  for i, charge in ipairs(charges) do
    local counted = entries[charge.client]
    local verdict, micros = verdicts[i][1], verdicts[i][2]
    local may_differ = has(charge.flags, COUNTS_REFUSALS) or charge.strikes
    if may_differ and is_left_out(charge, refused, verdict) then
      -- A refusal that was counted may have changed what the limit says.
      verdict, micros = entry.judge(counted, charge, units[i], now)
    end
    local left, reset = entry.left(counted, charge, now)
    reply[i + 1] = pack('<I7I7BI7I7', left + BALANCE_OFFSET, reset, verdict, micros, taken[i])
  end
  for _, counted in ipairs(is_explained and entries or {}) do
    local bytes = entry.abridged(counted, now)
    reply[#reply + 1] = pack('<H', #bytes) .. bytes
  end
  -- Only what has been decided without an error is kept.
  for i, counted in ipairs(entries) do
    if counted.is_changed then
      local client = decisions[place + i]
      states[client], full_at[client] = entry.encode(counted), longest[i]
    end
  end
  return table.concat(reply)
end

