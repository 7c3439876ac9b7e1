-- Frees a lock, whoever holds it.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the lock's channel
--
-- Reply: 1 if it was held, else 0
if #check_lock(KEYS[1]) == 0 then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[1], '0')
return 1
