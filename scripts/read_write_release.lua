-- Gives back all that its owner holds of a read/write lock, and withdraws what it has
-- announced.
--
-- KEYS[1]  the lock's hash
-- KEYS[2]  the lock's channel
-- KEYS[3]  the announcement of a waiting writer
-- ARGV[1]  owner
-- ARGV[2]  how the keys of read leases begin
--
-- Reply: 0 if the owner held the lock, else -1. When nobody is left, the channel says
-- "1" (wake all) after a writer and "0" (wake one) after the last reader.
local held = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[1] .. ':write')
withdraw(KEYS[3], ARGV[1])
if not held[1] and not held[2] then
  return -1
end
if leave(KEYS[1], ARGV[1], ARGV[2]) then
  redis.call('PUBLISH', KEYS[2], held[2] and '1' or '0')
end
return 0
