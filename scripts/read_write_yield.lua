-- Asks at the end of a tenure whether other clients wait for a read/write lock: if so
-- it is released for them, if not its lease begins anew. The owner has no holder at this
-- moment, only local waiters.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner
-- ARGV[2]  how many of the channel's subscribers are the asking client itself
-- ARGV[3]  lease, ms
-- ARGV[4]  "1" releases the lock even if nobody is seen to wait: some wait without subscribing
-- ARGV[5]  how the keys of read leases begin
-- ARGV[6]  the lock's channel
-- ARGV[7]  the key of a waiting writer's announcement
--
-- Reply: {-1, 0}       the owner does not hold the lock
--        {0, 0}        it keeps the lock, for the lease from now on: held once, and
--                      written if it was written
--        {1, others}   it has released the lock; that many others wait
local hash, owner, prefix = KEYS[1], ARGV[1], ARGV[5]
local held = redis.call('HMGET', hash, owner, owner .. ':write')
if not held[1] and not held[2] then
  return {-1, 0}
end
local waiting = others(ARGV[6], ARGV[7], client(owner), ARGV[2])
if waiting > 0 or ARGV[4] == '1' then
  withdraw(ARGV[7], owner)
  if leave(hash, owner, prefix, held[1]) then
    redis.call('PUBLISH', ARGV[6], held[2] and '1' or '0')
  end
  return {1, waiting}
end
hold(hash, owner, held[2] and 1 or 0, held[2] and 0 or 1, tonumber(ARGV[3]), prefix, false, held[1])
return {0, 0}
