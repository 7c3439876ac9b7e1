-- Adds permits: those that are released, or more of them. A negative number takes permits away,
-- more than are free if need be.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  how many permits
-- ARGV[3]  "1": only if there is such a semaphore; else it is made
-- ARGV[4]  the semaphore's channel; the free permits are published, unless they are negative
--
-- Reply: {1: added, 0: there is no such semaphore; the permits that are free then}
return once(KEYS[2], ARGV[1], function()
  local free = count_of(KEYS[1])
  if not free and ARGV[3] == '1' then
    return {0, 0}
  end
  free = (free or 0) + tonumber(ARGV[2])
  if free > 2147483647 then -- Redisson reads no greater one
    error('ERR there would be more than 2147483647 permits', 0)
  end
  if free >= 0 then -- Redisson fails over a negative one
    redis.call('PUBLISH', ARGV[4], free)
  end
  return {1, free}, function() redis.call('INCRBY', KEYS[1], ARGV[2]) end
end)
