-- Releases a lock, or sets the hold count that is left.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner
-- ARGV[2]  the hold count wanted; 0 frees the lock and publishes that on the channel
-- ARGV[3]  lease in ms for a lock that stays held
-- ARGV[4]  the lock's channel
--
-- Reply: the hold count that is left, or -1 if the owner does not hold the lock.
-- The hash has only one field, so deleting the field deletes the key.
if ARGV[2] == '0' then
  if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
    return -1
  end
  redis.call('PUBLISH', ARGV[4], '0')
  return 0
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -1
end
-- Before the count: a server out of memory refuses no write after the first.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return tonumber(ARGV[2])
