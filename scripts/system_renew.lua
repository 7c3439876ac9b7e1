-- Writes the record of a System, with a TTL, and puts the System on the list of all of them.
-- Those whose record has expired leave the list.
--
-- KEYS[1]  the list, a sorted set: System -> when its record expires, in epoch ms
-- KEYS[2]  the record, a string
-- ARGV[1]  the System
-- ARGV[2]  what the record says
-- ARGV[3]  the record's TTL in ms
--
-- Reply: 1
local time = redis.call('TIME')
local now, ttl = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ttl)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local longest = math.max(redis.call('PTTL', KEYS[1]), ttl)
redis.call('PEXPIRE', KEYS[1], longest) -- a user who may not set a TTL fails here, and leaves no list without one
redis.call('ZADD', KEYS[1], now + ttl, ARGV[1])
redis.call('PEXPIRE', KEYS[1], longest)
return 1
