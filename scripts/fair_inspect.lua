-- Reads the state of a fair lock.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  its queue, a list of owners
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), length of the queue, owner, hold count}; the last
-- two are "" if the lock is free.

--- include common/other_keys.lua
--- include common/foreign_hash.lua
--- include common/fair_queue.lua

local hash, queue = KEYS[1], ARGV[1]
local left = redis.call('PTTL', hash)
local waiting = call_if_here('LLEN', queue) or 0
if waiting > 0 then -- fails if they are not owners
  read_checked('LRANGE', call_if_here, queue, math.min(waiting, MAX_SEEN))
end
if left == -2 then
  return {left, waiting, '', ''}
end
local owner, count = owner_in(check_lock(hash))
return {left, waiting, owner, count}
