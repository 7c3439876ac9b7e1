-- Yields a read/write lock at the hand-off limit: releases it if other clients wait, otherwise renews
-- its lease. The owner has no holder at this moment, only local waiters.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  "1" forces the yield to foreign clients, even if none is seen to wait: some
--          wait without subscribing
-- ARGV[4]  the prefix of the keys of read leases
-- ARGV[5]  the lock's channel
-- ARGV[6]  the key of the wait queue
-- ARGV[7]  the settings of the wait queue
-- ARGV[8]  the entry that the client adds at the end of the wait queue, or ""
--
-- Reply: {ABSENT, 0}       the owner does not hold the lock; if it is free, because the hold has expired, the next
--                          clients in the wait queue get it, as after a release
--        {NOT_RELEASED, 0} it keeps the lock in its mode, with hold count 1; the lease starts now
--        {RELEASED, open}  it has released the lock; open is 1 if the lock is free now and left to
--                          foreign clients, else 0

--- include common/hash_values.lua
--- include common/wait_queue.lua
--- include common/read_write.lua

local hash = KEYS[1]
local owner, lease, forced, prefix, channel, queue_key, settings, entry = unpack(ARGV)
forced = forced == '1'
local held = redis.call('HMGET', hash, owner, owner .. ':write')
local queue = wait_queue(size_of(queue_key), queue_key, settings, read_write_lock(hash, prefix), owner)
if not held[1] and not held[2] then
  queue.withdraw(value_of(hash, 'mode') == 'read')
  return {ABSENT, 0}
end
local length, foreign = queue.others()
if length > 0 or foreign > 0 or forced then
  local free, transferred, open = leave(hash, owner, prefix, held[1]), nil, nil
  queue.leave(queue.term(entry))
  if free then
    transferred, open = queue.end_turn(length, foreign, true, forced)
    if not transferred then
      redis.call(PUBLISH, channel, held[2] and '1' or '0')
    end
  else
    queue.transfer_unblocked()
  end
  queue.enter(entry, true)
  return {RELEASED, open and 1 or 0}
end
check_mode(hash)
hold(hash, owner, held[2] and 1 or 0, held[2] and 0 or 1, tonumber(lease), prefix, false, held[1])
return {NOT_RELEASED, 0}
