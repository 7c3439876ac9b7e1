-- Asks at the end of a tenure whether other clients wait for the lock: if so it
-- is released for them, if not its lease begins anew. The owner has no holder at
-- this moment, only local waiters.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner
-- ARGV[2]  how many of the channel's subscribers are the asking client itself
-- ARGV[3]  lease, ms
-- ARGV[4]  "1" releases the lock even if nobody is seen to wait: some wait without subscribing
-- ARGV[5]  the lock's channel
--
-- Reply: {-1, 0}       the owner does not hold the lock
--        {0, 0}        it keeps the lock, for the lease from now on, held once
--        {1, others}   it has released the lock; that many others were subscribed
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {-1, 0}
end
local others = redis.call('PUBSUB', 'NUMSUB', ARGV[5])[2] - ARGV[2]
if others > 0 or ARGV[4] == '1' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('PUBLISH', ARGV[5], '0')
  return {1, math.max(others, 0)}
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], '1')
return {0, 0}
