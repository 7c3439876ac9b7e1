-- Writes where the instance of a singleton is, or what the last instance had begun when it stopped. Of several writers
-- the one with the highest token wins, however late the others come.
--
-- KEYS[1]  the whereabouts of the singleton, a hash
-- ARGV[1]  the field, "at" or "left"
-- ARGV[2]  the fencing token of the writer's hold
-- ARGV[3]  the value
-- ARGV[4]  the TTL of the hash in ms
--
-- Reply: 1, or 0 if the field was written with a higher token
local whereabouts, field, token, value, ttl = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local before = redis.call('HGET', whereabouts, field)
if before and (tonumber(string.match(before, '^%d+')) or 0) > tonumber(token) then
  return 0
end
redis.call('HSET', whereabouts, field, token .. ' ' .. value)
redis.call('PEXPIRE', whereabouts, ttl)
return 1
