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
return once(KEYS[2], ARGV[1], function()
  local free = count_of(KEYS[1])
  if free then
    return {0, free}
  end
  redis.call('PUBLISH', ARGV[4], ARGV[2])
  return {1, tonumber(ARGV[2])}, function()
    if ARGV[3] == '0' then
      redis.call('SET', KEYS[1], ARGV[2])
    else
      redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
    end
  end
end)
