-- When each changed subject will be whole, and the changed ones in order.
local whole_at, changed, changed_count = {}, {}, 0

-- Notes that a subject has changed to this state.
local function keep(subject, state, whole)
  if not whole_at[subject] then
    changed_count = changed_count + 1
    changed[changed_count] = subject
  end
  states[subject], whole_at[subject] = state, whole
end

