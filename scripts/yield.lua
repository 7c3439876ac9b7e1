-- Yields a lock at the hand-off limit: releases it if other clients wait, otherwise renews
-- its lease. The owner has no holder at this moment, only local waiters.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  "1" forces the yield to foreign clients, even if none is seen to wait: some
--          wait without subscribing
-- ARGV[4]  the lock's channel
-- ARGV[5]  the key of the wait queue
-- ARGV[6]  the settings of the wait queue
-- ARGV[7]  the key of its token counter
-- ARGV[8]  the entry that the client adds at the end of the wait queue, or ""
--
-- Reply: {ABSENT, 0}       the owner does not hold the lock; if it is free, because the hold has expired, the next
--                          client in the wait queue gets it, as after a release
--        {NOT_RELEASED, 0} it keeps the lock, with hold count 1; the lease starts now
--        {RELEASED, open}  it has released the lock; open is 1 if the lock is left to foreign
--                          clients, else 0

--- include common/foreign_fields.lua
--- include common/wait_queue.lua

local hash = KEYS[1]
local owner, lease, forced, channel, queue_key, settings, counter, entry = unpack(ARGV)
forced = forced == '1'
local queue = wait_queue(size_of(queue_key), queue_key, settings, plain_lock(hash, counter), owner)
if redis.call('HEXISTS', hash, owner) == 0 then
  queue.withdraw()
  return {ABSENT, 0}
end
local length, foreign = queue.others()
if length > 0 or foreign > 0 or forced then
  redis.call('HDEL', hash, owner)
  keep_foreign(hash)
  queue.leave(queue.term(entry))
  local transferred, open = queue.end_turn(length, foreign, true, forced)
  if not transferred then
    redis.call(PUBLISH, channel, '0')
  end
  queue.enter(entry, true)
  return {RELEASED, open and 1 or 0}
end
redis.call('PEXPIRE', hash, lease)
redis.call('HSET', hash, owner, '1')
return {NOT_RELEASED, 0}
