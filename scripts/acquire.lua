-- Takes a lock for its owner, or sets its hold count. Setting the count, instead of adding
-- to it, makes the script safe to send again after a lost reply.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
--
-- Reply: nil           the owner holds the lock with that count; the lease starts now
--        {ttl, other}  another owner holds it, for ttl more ms (-1: no TTL)
--        {-2, ""}      nobody holds it, so there is nothing to re-enter
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  if ARGV[2] ~= '1' then
    return {-2, ''}
  end
  take(KEYS[1], ARGV[3], ARGV[1], '1')
  return nil
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {left, redis.call('HRANDFIELD', KEYS[1])}
end
-- Before the count: a server out of memory refuses no write after the first.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return nil
