-- Yields a read/write lock at the hand-off limit: releases it if other clients wait, otherwise renews
-- its lease. The owner has no holder at this moment, only local waiters.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner
-- ARGV[2]  how many of the channel's subscribers are this client
-- ARGV[3]  lease, ms
-- ARGV[4]  "1" forces the yield, even if nobody is seen to wait: some wait without subscribing
-- ARGV[5]  the prefix of the keys of read leases
-- ARGV[6]  the lock's channel
-- ARGV[7]  the key of a waiting writer's announcement
--
-- Reply: {ABSENT, 0}         the owner does not hold the lock
--        {KEPT, 0}           it keeps the lock in its mode, with hold count 1; the lease starts
--                            now
--        {RELEASED, others}  it has released the lock; others is how many wait
local hash, owner, prefix = KEYS[1], ARGV[1], ARGV[5]
local held = redis.call('HMGET', hash, owner, owner .. ':write')
if not held[1] and not held[2] then
  return {ABSENT, 0}
end
local waiting = others(ARGV[6], ARGV[7], client(owner), ARGV[2])
if waiting > 0 or ARGV[4] == '1' then
  withdraw(ARGV[7], owner)
  if leave(hash, owner, prefix, held[1]) then
    redis.call('PUBLISH', ARGV[6], held[2] and '1' or '0')
  end
  return {RELEASED, waiting}
end
hold(hash, owner, held[2] and 1 or 0, held[2] and 0 or 1, tonumber(ARGV[3]), prefix, false, held[1])
return {KEPT, 0}
