-- Reads the state of a lock.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the lock's channel
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), subscribers, owner, hold count}; the last two
-- are "" if the lock is free.

--- include common/foreign_hash.lua

local hash, channel = KEYS[1], ARGV[1]
local left = redis.call('PTTL', hash)
local subscribers = redis.call('PUBSUB', NUMSUB, channel)[2]
if left == -2 then
  return {left, subscribers, '', ''}
end
local owner, count = owner_in(check_lock(hash))
return {left, subscribers, owner, count}
