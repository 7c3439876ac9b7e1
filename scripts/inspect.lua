-- Reads the state of a lock.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the lock's channel
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), subscribers, owner, hold count}; the last two
-- are "" if the lock is free.
local left = redis.call('PTTL', KEYS[1])
local subscribers = redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]
if left == -2 then
  return {left, subscribers, '', ''}
end
local owner, count = owner_in(check_lock(KEYS[1]))
return {left, subscribers, owner, count}
