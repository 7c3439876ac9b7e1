-- The second part of acquire.lua, before the code that only rarer cases need.
local held_for, held_by = confirm_entry(hash, owner, count, queue_key, entry)
if held_for then
  return {held_for, held_by}
end
