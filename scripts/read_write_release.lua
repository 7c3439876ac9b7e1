-- Ends all holds of an owner on a read/write lock, and withdraws its announcement.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner
-- ARGV[2]  the prefix of the keys of read leases
-- ARGV[3]  the lock's channel
-- ARGV[4]  the key of a waiting writer's announcement
--
-- Reply: 0 if the owner held the lock, else -1. When the lock becomes free, "1" (wake all) is
-- published after a writer, and "0" (wake one) after the last reader.
local held = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[1] .. ':write')
withdraw(ARGV[4], ARGV[1])
if not held[1] and not held[2] then
  return -1
end
if leave(KEYS[1], ARGV[1], ARGV[2], held[1]) then
  redis.call('PUBLISH', ARGV[3], held[2] and '1' or '0')
end
return 0
