-- Common part of the scripts that end holds.

--- include common/foreign_hash.lua
--- include common/hash_values.lua

-- Reports whether the mode of a lock is missing, or a mode of a read/write lock.
local function is_our_mode(hash)
  local mode = value_of(hash, 'mode')
  return mode == 'read' or mode == 'write' or not mode and redis.call('HEXISTS', hash, 'mode') == 0
end

-- Removes the TTL of a hash without owners if it has fields of another application: the TTL was the lease of the
-- hold that has ended. No error may keep the hold from ending.
local function keep_foreign(hash)
  pcall(function()
    local foreign = false
    for _, field in ipairs(redis.call('HRANDFIELD', hash, MAX_SEEN)) do
      if is_owner(field) and count_in(hash, field) then
        return -- another owner holds the lock
      end
      foreign = foreign or field ~= 'mode' or not is_our_mode(hash)
    end
    if foreign then
      redis.call('PERSIST', hash)
    end
  end)
end
