-- Reads the state of a fair lock.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  its queue, a list of owners
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), length of the queue, owner, hold count}; the last
-- two are "" if the lock is free.

--- include common/other_keys.lua
--- include common/foreign_hash.lua

local hash, queue = KEYS[1], ARGV[1]
local left = redis.call('PTTL', hash)
local waiting = call_if_here('LLEN', queue) or 0
-- The first entry is checked before the others, which may be large.
for _, max in ipairs(waiting > 0 and {1, MAX_SEEN} or {}) do
  check_entries(call_if_here('LRANGE', queue, 0, max - 1) or {})
end
if left == -2 then
  return {left, waiting, '', ''}
end
local owner, count = owner_in(check_lock(hash))
return {left, waiting, owner, count}
