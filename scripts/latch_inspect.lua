-- Reads the count of a latch.
--
-- KEYS[1]  the latch, a string: how many count-downs are missing
-- ARGV     nothing
--
-- Reply: the count; 0 if the latch is open

--- include common/number.lua
--- include common/counts.lua

return math.max(number_of(KEYS[1], MAX_NUMBER, 'missing count-downs') or 0, 0)
