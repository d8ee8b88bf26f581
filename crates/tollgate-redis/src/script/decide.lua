local CHECK, REFUND, RESET, REFUSED_ALREADY = 0, 2, 3, 4

local function changes(counted_subject, charge, operation, refused)
  if refused and charge.cost > 0 then
    return has(charge.flags, COUNTS_REFUSALS) or subject.counts_otherwise(counted_subject, charge)
  end
  return operation == RESET or charge.cost > 0
end

-- Changes a state no further than its conversion did.
local function convert_only()
end

-- Decides all charges of a request: they are taken whole or not at all, and a refused request and a peek leave the
-- subjects exactly as they were, but that states counted by another quota are converted. Answers with the packed reply.
local function decide(template, counted)
  local operation, charges, now = template.operation, charges_of(template), now
  local subjects = {}
  for i = 1, template.subjects do
    subjects[i] = subject.load(states[counted[i]])
    now = max(now, subjects[i].at)
  end

  local verdicts, refused = {}, operation == REFUSED_ALREADY
  for i, charge in ipairs(charges) do
    local verdict, micros = ADMIT, 0
    if operation == CHECK or operation == REFUSED_ALREADY then
      verdict, micros = subject.judge(subjects[charge.subject], charge, now)
    end
    verdicts[i] = { verdict, micros }
    refused = refused or verdict ~= ADMIT
  end

  for _, charge in ipairs(charges) do
    local counted_subject = subjects[charge.subject]
    if changes(counted_subject, charge, operation, refused) then
      subject.advance(counted_subject, now)
      if operation == RESET then
        subject.forget(counted_subject, charge)
      elseif operation == REFUND then
        subject.edit(counted_subject, charge, now, give_back, template.taken_at)
      elseif refused and not has(charge.flags, COUNTS_REFUSALS) then
        subject.edit(counted_subject, charge, now, convert_only)
      elseif refused then
        subject.edit(counted_subject, charge, now, penalise, now)
      else
        subject.edit(counted_subject, charge, now, take, now)
      end
    end
  end
  for i, changed_subject in ipairs(subjects) do
    if changed_subject.has_changed then
      local whole = now + subject.whole_after(changed_subject)
      keep(counted[i], subject.stored(changed_subject), whole)
    end
    if #changed_subject.slots == 0 then
      -- Nothing to remember, not even the instant: as if it had never been seen.
      changed_subject.at = 0
    end
  end

  local reply = { pack('<I7', now) }
  for i, charge in ipairs(charges) do
    local counted_subject = subjects[charge.subject]
    local verdict, micros = verdicts[i][1], verdicts[i][2]
    if refused and has(charge.flags, COUNTS_REFUSALS) then
      verdict, micros = subject.judge(counted_subject, charge, now)
    end
    local remaining, reset = subject.left(counted_subject, charge, now)
    reply[i + 1] = pack('<I7I7BI7', remaining, reset, verdict, micros)
  end
  return table.concat(reply)
end

