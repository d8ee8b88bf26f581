-- Way one: plain decisions, on entries that hold any buckets of the limits asked, in any order, beside any other slots.
--
-- It equals the model: convert, judge and take for each charge in turn, then settle. No functions and few tables are made
-- for a decision: this is where a busy server spends its time. Whatever is unusual is left to the model: a stored window
-- of a limit asked, an instant beyond the border, bytes that make no sense.

-- Products of two numbers below 2^26 are exact.
local FINEST = 2 ^ 26

-- What an old quota needs to be converted from, as `bucket_used` in the model.
local function conversion_from(capacity, grain)
  local cut = div_ceil(grain, FINEST)
  return { capacity = capacity, grain = grain, cut = cut, parts = div_ceil(grain, cut) }
end

-- The grains used under another quota: what is left stays left, up to the new capacity, and a debt stays a debt.
local function converted_used(used, old, capacity, grain)
  local old_grain, full = old.grain, capacity * grain
  local left = old.capacity * old_grain - used
  local is_debt = left < 0
  if is_debt then
    left = -left
  end
  local rest = left % old_grain
  local units = (left - rest) / old_grain
  if units >= capacity then
    return is_debt and full + full or 0
  end
  local begun = 0
  if rest > 0 and old_grain ~= grain then
    if is_debt then
      begun = 1
    end
    local parts = old.parts
    rest = (rest - rest % old.cut) / old.cut
    local finer = grain % parts
    rest = rest * ((grain - finer) / parts) + div(rest * finer, parts)
  end
  if is_debt then
    return full + units * grain + rest + begun
  end
  return full - units * grain - rest
end

-- The quotas of stored buckets, by the bytes of their slots up to the state.
local stored_quotas = {}

-- Returns the quota of the bucket in a slot; nothing if it is no sound bucket.
local function stored_bucket(state, position, next)
  local quota = stored_quotas[sub(state, position, next - 8)] or stored_quotas[sub(state, position, next - 15)]
  if quota then
    return quota
  elseif string.byte(state, position + 5) ~= BUCKET then
    return nil
  end
  local capacity, grain, refill, behind
  capacity, behind = varint(state, position + 6)
  grain, behind = varint(state, behind)
  refill, behind = varint(state, behind)
  if capacity * grain * refill == 0 or next - behind ~= (refill > 1 and 14 or 7) then
    return nil
  end
  quota = conversion_from(capacity, grain)
  quota.refill = refill
  stored_quotas[sub(state, position, behind - 1)] = quota
  return quota
end

-- Prepares a template: arrays over its charges, and a part for each of its clients.
--
--   heads, widths, formats  of a slot as the quota asked counts it: the bytes up to the state, and all of them
--   costs, rooms            in grains: what is asked, and what may be used before that
--   used                    worked on here: the grains used
--   values                  of a part: an entry of just these slots, to be packed in its `format`
local function prepare(template)
  local heads, widths, formats, costs, rooms, refills, capacities, grains = {}, {}, {}, {}, {}, {}, {}, {}
  local parts, part, position = {}, nil, template.start
  for k = 1, template.charge_count do
    local client, _, cost, _, id, _, _, capacity, grain, refill, _, head, behind =
      unpack_from(CHARGE, request, position)
    position = behind
    if not parts[client] then
      part = { first = k, index = {}, format = HEADER, values = { VERSION, 0 } }
      parts[client] = part
    end
    local width, tail, values = 7, 'I7', part.values
    if refill > 1 then
      width, tail = 14, 'I7I7'
    end
    head = string.char(#head + width) .. head
    heads[k], widths[k], formats[k] = head, #head + width, '<c' .. #head .. tail
    costs[k], rooms[k], refills[k] = cost * grain, (capacity - cost) * grain, refill
    capacities[k], grains[k] = capacity, grain
    part.last, part.index[id], part.format = k, k, part.format .. 'c' .. #head .. tail
    values[#values + 1] = head
    for _ = 1, width / 7 do
      values[#values + 1] = 0
    end
  end
  template.heads, template.widths, template.formats, template.used = heads, widths, formats, {}
  template.costs, template.rooms, template.refills = costs, rooms, refills
  template.capacities, template.grains = capacities, grains
  template.reply = '<BI7' .. string.rep('I7', template.charge_count)
  template.parts = parts
  return parts
end

-- Reads the slots of an entry from a position on, in whatever order. Those of charges up to the one before `k` have been
-- read. Returns nothing if it takes the model.
local function walk(template, part, state, position, k, now)
  local heads, refills, used, size = template.heads, template.refills, template.used, #state
  local pieces, found
  while position <= size do
    if position + 15 > size then
      return nil
    end
    local length, id = unpack_from('<BI4', state, position)
    local next = position + length + 1
    if length > 127 then
      local body
      length, body = varint(state, position)
      id, next = unpack_from('<I4', state, body), body + length
    end
    if next > size + 1 or length < 15 then
      return nil
    end
    local asked, full = part.index[id], unpack_from('<I7', state, next - 7)
    if not asked then
      if full > now then
        pieces = pieces or {}
        pieces[#pieces + 1] = sub(state, position, next - 1)
        part.longest = max(part.longest, full)
      end
    elseif asked < k or found and found[asked] then
      -- The same limit twice.
      return nil
    else
      local head, quota = heads[asked], nil
      local refill, left = refills[asked], full - now
      if sub(state, position, position + #head - 1) ~= head then
        quota = stored_bucket(state, position, next)
        if not quota then
          return nil
        end
        refill, part.is_converted = quota.refill, true
      end
      if refill > 1 then
        left = left * refill - unpack_from('<I7', state, next - 14)
      end
      if left < 0 then
        left = 0
      end
      if quota then
        left = converted_used(left, quota, template.capacities[asked], template.grains[asked])
      end
      used[asked] = left
      if asked == k and not pieces then
        k = k + 1
      else
        pieces, found = pieces or {}, found or {}
        pieces[#pieces + 1], found[asked] = asked, true
      end
    end
    position = next
  end
  part.stored, part.pieces, part.found = k - 1, pieces, found
  return true
end

-- Reads what is used of each limit of a part from the entry of its client. Returns nothing if it takes the model. Sets:
--
--   stored   the charge up to which limits come first in the entry, in the order asked
--   pieces   what comes behind them: charges, and the bytes of slots that are not asked for and still used; or nothing
--   found    whether a charge is in `pieces`
--   longest  when nothing is used of the slots that are not asked for
local function read(template, part, state, now)
  local heads, widths, formats, refills, used =
    template.heads, template.widths, template.formats, template.refills, template.used
  local k, last, position, beyond = part.first, part.last, 9, #state + 1
  part.pieces, part.found, part.longest, part.is_converted = nil, nil, 0, false
  while k <= last and position + widths[k] <= beyond do
    local head, one, two = unpack_from(formats[k], state, position)
    if head ~= heads[k] then
      break
    end
    local refill, left = refills[k], nil
    if refill > 1 then
      left = (two - now) * refill - one
    else
      left = one - now
    end
    if left < 0 then
      left = 0
    end
    used[k] = left
    position = position + widths[k]
    k = k + 1
  end
  part.stored = k - 1
  if position < beyond and not walk(template, part, state, position, k, now) then
    return nil
  end
  for j = part.stored + 1, last do
    if not (part.found and part.found[j]) then
      used[j] = 0
    end
  end
  return true
end

-- Returns the entry of a part whose slots are not just those asked, in their order; false if nothing is left. Limits
-- that were not stored are added if the request `fits`.
local function compose(template, part, now, fits)
  local order, found = {}, part.found
  for k = part.first, part.stored do
    order[#order + 1] = k
  end
  for _, piece in ipairs(part.pieces or {}) do
    order[#order + 1] = piece
  end
  for k = part.stored + 1, fits and part.last or 0 do
    if not (found and found[k]) then
      order[#order + 1] = k
    end
  end
  local slots = { pack(HEADER, VERSION, now) }
  for _, piece in ipairs(order) do
    local left, refill = template.used[piece], template.refills[piece]
    if not refill then
      slots[#slots + 1] = piece
    elseif refill > 1 and left > 0 then
      local rest = -left % refill
      slots[#slots + 1] = pack(template.formats[piece], template.heads[piece], rest, now + (left + rest) / refill)
    elseif left > 0 then
      slots[#slots + 1] = pack(template.formats[piece], template.heads[piece], now + left)
    end
  end
  return #slots > 1 and table.concat(slots)
end

-- Writes the entry of a part's client.
local function write(template, part, client, now, fits)
  local refills, used, costs, longest = template.refills, template.used, template.costs, part.longest
  local values, field, state = part.values, 4, nil
  values[2] = now
  for k = part.first, part.last do
    local left, refill, full = used[k], refills[k], nil
    if fits then
      left = left + costs[k]
      used[k] = left
    end
    if refill > 1 then
      local rest = -left % refill
      full = now + (left + rest) / refill
      values[field], values[field + 1] = rest, full
      field = field + 3
    else
      full = now + left
      values[field] = full
      field = field + 2
    end
    if full > longest then
      longest = full
    end
  end
  if not fits or part.found or part.pieces and part.stored < part.last then
    state = compose(template, part, now, fits)
  else
    state = pack(part.format, unpack(values))
    if part.pieces then
      state = state .. table.concat(part.pieces)
    end
  end
  keep(client, state, longest)
end

-- Decides the decision whose template is at a place in `decisions`, followed by its clients. Returns its reply; nothing if
-- it takes the model.
local function decide_buckets(template, place)
  local parts, now = template.parts or prepare(template), clock
  local count = #parts
  for p = 1, count do
    local state = states[decisions[place + p]]
    if state then
      if #state < 8 then
        return nil
      end
      local version, at = unpack_from(HEADER, state)
      if version ~= VERSION or at > border then
        return nil
      elseif at > now then
        now = at
      end
    end
  end
  for p = 1, count do
    if not read(template, parts[p], states[decisions[place + p]] or '', now) then
      return nil
    end
  end

  local used, rooms, fits = template.used, template.rooms, true
  for k = 1, template.charge_count do
    if used[k] > rooms[k] then
      fits = false
      break
    end
  end
  for p = 1, count do
    local part = parts[p]
    if fits or part.is_converted then
      write(template, part, decisions[place + p], now, fits)
    end
  end
  return pack(template.reply, fits and TAKEN or REFUSED, now, unpack(used))
end

