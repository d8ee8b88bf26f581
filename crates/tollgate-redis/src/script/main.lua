local CHECK, CHARGE, REFUND, RESET = 0, 1, 2, 3

local request, position = ARGV[1], 1

local function read(format)
  local values = { struct.unpack(format, request, position) }
  position = values[#values]
  return unpack(values)
end

local subjects = {}

local function read_charge()
  local key, limit, kind, flags, cost, patience, capacity, grain, pace, offset = read('<I4I4BBI8I8I8I8I8I8')
  subjects[key] = subjects[key] or subject.load(KEYS[key])
  local quota = { kind = kind, queues = bit.band(flags, 1) ~= 0, capacity = capacity, grain = grain, offset = offset }
  if kind == BUCKET then
    quota.refill = pace
  else
    quota.period = pace
  end
  if bit.band(flags, 4) ~= 0 then
    quota.offset = FIRST_REQUEST
  end
  return {
    subject = subjects[key],
    limit = limit,
    quota = quota,
    cost = cost,
    patience = patience,
    counts_refusals = bit.band(flags, 2) ~= 0,
  }
end

local function changes(charge, operation, refused)
  if operation == CHECK and refused and charge.cost > 0 then
    return charge.counts_refusals or subject.counts_otherwise(charge.subject, charge)
  end
  return operation == RESET or charge.cost > 0
end

local function keep()
end

-- Decides all charges of a request: they are taken whole or not at all, and a refused request and a peek leave the
-- subjects exactly as they were, but that states counted by another quota are converted. Answers with the packed reply.
local function decide(operation, taken_at, charges, now)
  for _, charge in ipairs(charges) do
    now = max(now, charge.subject.at)
  end

  local verdicts, refused = {}, false
  for i, charge in ipairs(charges) do
    local verdict, micros = ADMIT, 0
    if operation == CHECK then
      verdict, micros = subject.judge(charge.subject, charge, now)
    end
    verdicts[i] = { verdict, micros }
    refused = refused or verdict ~= ADMIT
  end

  for _, charge in ipairs(charges) do
    if changes(charge, operation, refused) then
      local counted = charge.subject
      subject.advance(counted, now)
      if operation == RESET then
        subject.forget(counted, charge)
      elseif operation == REFUND then
        subject.edit(counted, charge, now, give_back, taken_at)
      elseif refused and not charge.counts_refusals then
        subject.edit(counted, charge, now, keep)
      elseif refused then
        subject.edit(counted, charge, now, penalise, now)
      else
        subject.edit(counted, charge, now, take, now)
      end
    end
  end
  for _, charge in ipairs(charges) do
    if #charge.subject.slots == 0 then
      -- Nothing to remember, not even the instant: as if it had never been seen.
      charge.subject.at = 0
    end
  end

  local reply = { struct.pack('<I8', now) }
  for i, charge in ipairs(charges) do
    local verdict, micros = verdicts[i][1], verdicts[i][2]
    if refused and charge.counts_refusals then
      verdict, micros = subject.judge(charge.subject, charge, now)
    end
    local remaining, reset = subject.left(charge.subject, charge, now)
    reply[i + 1] = struct.pack('<I8I8BI8', remaining, reset, verdict, micros)
  end
  return table.concat(reply)
end

-- The server's time, read once; a test sends its own. A virtual clock and the server's do not run alike, so keys
-- written under one live for a minute at least.
local is_given, now = read('<BI8')
local shortest_lifetime = 60000
if is_given == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  shortest_lifetime = 1
end

local replies = {}
while position <= #request do
  local operation, taken_at, count = read('<BI8I4')
  local charges = {}
  for i = 1, count do
    charges[i] = read_charge()
  end
  replies[#replies + 1] = decide(operation, taken_at, charges, now)
end
for _, changed in pairs(subjects) do
  if changed.has_changed then
    subject.save(changed, shortest_lifetime)
  end
end
return table.concat(replies)
