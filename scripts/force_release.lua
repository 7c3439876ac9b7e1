-- Frees a lock, whoever holds it.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the lock's channel
--
-- Reply: 1 if it was held, else 0. HLEN fails for a key of another type, so it is not deleted.
if redis.call('HLEN', KEYS[1]) == 0 then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[1], '0')
return 1
