-- Creates a semaphore, unless it exists.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  how many permits
-- ARGV[3]  the TTL of the semaphore in ms, or "0" for none
-- ARGV[4]  the semaphore's channel, on which the permits are published
--
-- Reply: {1: created, 0: it existed; the permits that are free then}

--- include common/once.lua
--- include common/counts.lua

local semaphore, record = KEYS[1], KEYS[2]
local command, permits, ttl, channel = unpack(ARGV)
return once(record, command, function()
  local free = count_of(semaphore)
  if free then
    return {0, free}
  end
  redis.call(PUBLISH, channel, permits)
  return {1, tonumber(permits)}, function()
    if ttl == '0' then
      redis.call('SET', semaphore, permits)
    else
      redis.call('SET', semaphore, permits, 'PX', ttl)
    end
  end
end)
