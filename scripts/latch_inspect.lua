-- Reads the count of a latch. If Redisson has opened it, the ids of those who were counted are
-- still there: they are removed.
--
-- KEYS[1]  the latch, a string: how many count-downs are missing
-- KEYS[2]  the set of the ids of those who were counted
-- ARGV     nothing
--
-- Reply: the count; 0 if the latch is open
local count = number_of(KEYS[1], MOST, 'missing count-downs') or 0
if count <= 0 and redis.call('EXISTS', KEYS[2]) == 1 then
  redis.call('DEL', KEYS[2])
end
return math.max(count, 0)
