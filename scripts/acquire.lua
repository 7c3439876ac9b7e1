-- Takes a lock for its owner, or sets its hold count. Setting the count, instead of adding
-- to it, makes the script safe to send again after a lost reply. A free lock goes
-- to the first client in its wait queue, if that is another one.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
-- ARGV[4]  the key of the wait queue
-- ARGV[5]  the settings of the wait queue
-- ARGV[6]  the key of its token counter
-- ARGV[7]  the entry that the client adds to the wait queue if it is refused, or ""
-- ARGV[8]  "1": the client was notified of a release since it was last refused
--
-- Reply: nil           the owner holds the lock with that count; the lease starts now, and the wait queue was empty
--        {OTHERS_WAIT, ""}  the same, and it was not
--        {ttl, other}  another owner holds it, for ttl more ms (-1: no TTL); or it is left to
--                      foreign clients for that time, and other is ""
--        {-2, ""}      the lock is free, so there is nothing to re-enter

--- include common/take.lua

local hash = KEYS[1]
local owner, count, lease, queue_key, settings, counter, entry, notified = unpack(ARGV)

-- Most acquires end here: the lock is free, and has no wait queue.
if count == '1' and redis.pcall('EXISTS', hash, queue_key) == 0 then
  take(hash, lease, owner, '1')
  return nil
end

--- include common/confirm_entry.lua

-- Most tries of processes that wait end here.
local held_for, held_by = confirm_entry(hash, owner, count, queue_key, entry)
if held_for then
  return {held_for, held_by}
end

--- include common/admit.lua

local free, ttl, other, queue_was_empty = admit(hash, owner, count, queue_key, settings, counter, entry, notified)
if ttl then
  return {ttl, other}
elseif free then
  take(hash, lease, owner, '1')
else
  -- Before the count: a server out of memory refuses no write after the first.
  redis.call('PEXPIRE', hash, lease)
  redis.call('HSET', hash, owner, count)
end
if not queue_was_empty then
  return {OTHERS_WAIT, ''}
end
return nil
