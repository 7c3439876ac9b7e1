-- Yields a lock at the hand-off limit: releases it if other clients wait, otherwise renews
-- its lease. The owner has no holder at this moment, only local waiters.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner
-- ARGV[2]  how many of the channel's subscribers are this client
-- ARGV[3]  lease, ms
-- ARGV[4]  "1" forces the yield, even if nobody is seen to wait: some wait without subscribing
-- ARGV[5]  the lock's channel
--
-- Reply: {ABSENT, 0}         the owner does not hold the lock
--        {KEPT, 0}           it keeps the lock, with hold count 1; the lease starts now
--        {RELEASED, others}  it has released the lock; others is how many were subscribed
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {ABSENT, 0}
end
local others = redis.call('PUBSUB', 'NUMSUB', ARGV[5])[2] - ARGV[2]
if others > 0 or ARGV[4] == '1' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('PUBLISH', ARGV[5], '0')
  return {RELEASED, math.max(others, 0)}
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], '1')
return {KEPT, 0}
