-- Counts permits. Those that have expired count as free.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- ARGV     none
--
-- Reply: {free, taken, all, "set"}; {0, taken, 0, ""} if no number of permits is set

--- include common/counts.lua
--- include common/clock.lua
--- include common/expirable.lua

local free_key, taken_key = KEYS[1], KEYS[2]
check_taken(taken_key)
local free = count_of(free_key)
local all = redis.call('ZCOUNT', taken_key, 0, '+inf')
local taken = redis.call('ZCOUNT', taken_key, epoch_ms() + 1, '+inf')
if not free then
  return {0, taken, 0, ''}
end
return {free + all - taken, taken, free + all, 'set'}
