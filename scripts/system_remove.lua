-- Removes the record of a System that has released everything.
--
-- KEYS[1]  the list of all Systems, a sorted set
-- KEYS[2]  the record, a string
-- ARGV[1]  the System
--
-- Reply: how many records were there, 0 or 1

local list, record, system = KEYS[1], KEYS[2], ARGV[1]
redis.call('ZREM', list, system)
return redis.call('DEL', record)
