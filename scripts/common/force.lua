-- Common part of the scripts that free a lock with one owner by force.

--- include common/foreign_hash.lua
--- include common/hash_values.lua
--- include common/foreign_fields.lua
--- include common/ask_holder.lua

-- Ends the holds of the owners in ARGV, from the given one on. Reports whether one of them held the lock; then asks the
-- process of that owner for it, which may not begin another hold if the lock has stayed there without one.
local function end_named(hash, from)
  local holder = owner_in(check_lock(hash))
  local fields, ended = redis.call('HLEN', hash), 0
  for i = from, #ARGV do
    -- While a cluster moves the slot, a hash that was just deleted cannot be read.
    if is_owner(ARGV[i]) and ended < fields then
      local named = {}
      for _, field in ipairs({ARGV[i], ARGV[i] .. ':write'}) do
        if count_in(hash, field) then
          named[#named + 1] = field
        end
      end
      if named[1] then
        ended = ended + redis.call('HDEL', hash, unpack(named))
      end
    end
  end
  if ended > 0 then
    ask_holder(hash, holder)
  end
  if ended > 0 and ended < fields then
    if ended == fields - 1 and is_our_mode(hash) then
      redis.call('HDEL', hash, 'mode') -- it was a read/write lock
    end
    keep_foreign(hash)
  end
  return ended > 0
end
