-- Reads the state of a fair lock.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  its queue, a list of owners
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), length of the queue, owner, hold count}; the last
-- two are "" if the lock is free.
local left = redis.call('PTTL', KEYS[1])
local waiting = beside('LLEN', ARGV[1]) or 0
if left == -2 then
  return {left, waiting, '', ''}
end
local owner, count = owner_in(check_lock(KEYS[1]))
return {left, waiting, owner, count}
