-- Common part of the scripts that free a lock with one owner by force; prepended to each of them.

-- Ends the holds of the owners in ARGV, from the given one on. Reports whether one of them held the lock.
local function end_named(hash, from)
  check_lock(hash)
  local fields, ended = redis.call('HLEN', hash), 0
  for i = from, #ARGV do
    -- While a cluster moves the slot, a hash that was just deleted cannot be read.
    if is_owner(ARGV[i]) and ended < fields then
      ended = ended + redis.call('HDEL', hash, ARGV[i], ARGV[i] .. ':write')
    end
  end
  if ended > 0 and ended == fields - 1 then
    redis.call('HDEL', hash, 'mode') -- it was a read/write lock
  end
  return ended > 0
end
