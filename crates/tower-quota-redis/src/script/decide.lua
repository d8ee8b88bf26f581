local CHECK, CHARGE_ANYWAY, REFUND, RESET, REFUSED_ALREADY = 0, 1, 2, 3, 4
-- More units than this are taken as this many: no state remembers more.
local MOST_TAKEN = 2 * MOST_GRAINS

-- How many units each charge asks for: its cost, or, of those that take at most that, as many as all of them have left.
local function units_of(charges, subjects, now, judges)
  local units, together = {}, nil
  for i, charge in ipairs(charges) do
    units[i] = charge.cost
    if judges and charge.cost > 0 and has(charge.flags, AT_MOST) then
      units[i] = min(charge.cost, (subject.left(subjects[charge.subject], charge, now)))
      -- Shadows have no say in what the others take.
      if not has(charge.flags, SHADOW) then
        together = min(together or units[i], units[i])
      end
    end
  end
  for i, charge in ipairs(charges) do
    if judges and charge.cost > 0 and has(charge.flags, AT_MOST) then
      units[i] = max(min(units[i], together or units[i]), 1)
    end
  end
  return units
end

-- Changes a state no further than its conversion did.
local function convert_only()
end

-- Takes from what a charge's limit counts, or gives back.
local function change(counted_subject, charge, units, template, stays_out, now)
  local operation, counts_refusals = template.operation, has(charge.flags, COUNTS_REFUSALS)
  local changes = units > 0
  if operation == RESET then
    changes = true
  elseif stays_out then
    changes = changes and (counts_refusals or subject.counts_otherwise(counted_subject, charge))
  end
  if not changes then
    return
  end
  subject.advance(counted_subject, now)
  if operation == RESET then
    subject.forget(counted_subject, charge)
  elseif operation == REFUND then
    subject.edit(counted_subject, charge, now, give_back, template.taken_at, units)
  elseif not stays_out then
    subject.edit(counted_subject, charge, now, take, now, units)
  elseif counts_refusals then
    subject.edit(counted_subject, charge, now, penalise, now, units)
  else
    subject.edit(counted_subject, charge, now, convert_only)
  end
end

-- Adds to the client's strikes, or forgets them.
local function strike(counted_subject, charge, units, operation, judges, stays_out, now)
  local strikes = charge.strikes
  if operation == RESET then
    subject.forget(counted_subject, strikes)
  elseif judges and units > 0 and (stays_out or subject.counts_otherwise(counted_subject, strikes)) then
    subject.advance(counted_subject, now)
    subject.edit(counted_subject, strikes, now, stays_out and bucket.strike or convert_only, nil, strikes.most_debt)
  end
end

-- Decides all charges of a request: they are taken whole or not at all, and a refused request and a peek leave the
-- subjects exactly as they were, but that states counted by another quota are converted. A shadow charge is taken if the
-- others are and it fits itself. Answers with the packed reply.
local function decide(template, counted)
  local operation, charges, now = template.operation, charges_of(template), now
  local judges = operation == CHECK or operation == REFUSED_ALREADY
  local subjects = {}
  for i = 1, template.subjects do
    subjects[i] = subject.load(states[counted[i]])
    now = max(now, subjects[i].at)
  end

  local units = units_of(charges, subjects, now, judges)
  local verdicts, refused = {}, operation == REFUSED_ALREADY
  for i, charge in ipairs(charges) do
    local verdict, micros = ADMIT, 0
    if judges then
      verdict, micros = subject.judge(subjects[charge.subject], charge, units[i], now)
    end
    verdicts[i] = { verdict, micros }
    refused = refused or verdict ~= ADMIT and not has(charge.flags, SHADOW)
  end

  for i, charge in ipairs(charges) do
    local counted_subject = subjects[charge.subject]
    local stays_out = refused or verdicts[i][1] ~= ADMIT
    change(counted_subject, charge, units[i], template, stays_out, now)
    if charge.strikes then
      strike(counted_subject, charge, units[i], operation, judges, stays_out, now)
    end
  end
  for i, changed_subject in ipairs(subjects) do
    if changed_subject.has_changed then
      local whole = now + subject.whole_after(changed_subject)
      keep(counted[i], subject.stored(changed_subject), whole)
    end
    if subject.is_empty(changed_subject) then
      -- Nothing to remember, not even the instant: as if it had never been seen.
      changed_subject.at = 0
    end
  end

  local reply = { pack('<I7', now) }
  for i, charge in ipairs(charges) do
    local counted_subject = subjects[charge.subject]
    local verdict, micros = verdicts[i][1], verdicts[i][2]
    local stays_out = refused or verdict ~= ADMIT
    if stays_out and (has(charge.flags, COUNTS_REFUSALS) or charge.strikes) then
      -- A refusal that was counted may have changed what the limit says.
      verdict, micros = subject.judge(counted_subject, charge, units[i], now)
    end
    local taken = 0
    if operation == CHARGE_ANYWAY or operation == CHECK and not stays_out then
      taken = min(units[i], MOST_TAKEN)
    end
    local remaining, reset = subject.left(counted_subject, charge, now)
    reply[i + 1] = pack('<I7I7BI7I7', remaining, reset, verdict, micros, taken)
  end
  return table.concat(reply)
end

