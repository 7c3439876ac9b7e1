-- Reads a semaphore.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- ARGV     nothing
--
-- Reply: {the permits that are free, the TTL of the semaphore in ms: -1: none, -2: there is no
-- semaphore}

--- include common/counts.lua

local semaphore = KEYS[1]
return {count_of(semaphore) or 0, redis.call('PTTL', semaphore)}
