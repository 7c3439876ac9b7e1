-- Ends all holds of an owner on a read/write lock, and removes its client from the wait queue. If
-- the lock becomes free, the first client in the wait queue gets it.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner
-- ARGV[2]  the prefix of the keys of read leases
-- ARGV[3]  the lock's channel
-- ARGV[4]  the key of the wait queue
-- ARGV[5]  the settings of the wait queue
--
-- Reply: 0 if the owner held the lock, else -1. When the lock becomes free and no client in the
-- wait queue gets it, "1" (wake all) is published after a writer, and "0" (wake one) after the last reader.

--- include common/hash_values.lua
--- include common/wait_queue_entries.lua
--- include common/wait_queue.lua
--- include common/read_write.lua

local hash = KEYS[1]
local owner, prefix, channel, queue_key, settings = unpack(ARGV)
local held = redis.call('HMGET', hash, owner, owner .. ':write')
local ours = held[1] or held[2]
local free = ours and leave(hash, owner, prefix, held[1])
-- The lock is released even if the wait queue is malformed.
local here, size = pcall(size_of, queue_key)
local function publish()
  return redis.call(PUBLISH, channel, held[2] and '1' or '0')
end
-- Whether clients have heard that a lock with an empty wait queue is free; foreign ones may be among them.
local heard = free and here and size == 0 and publish()
local ok, transferred = true, false
if here and size and (size > 0 or heard and heard > 0) then
  ok, transferred = pcall(function()
    if heard and foreign_subscribers(queue_key, channel) == 0 then
      return false
    end
    local queue = wait_queue(size, queue_key, settings, read_write_lock(hash, prefix), owner)
    if ours then
      queue.leave()
    else
      queue.withdraw(value_of(hash, 'mode') == 'read')
    end
    return free and queue.end_turn(queue.others())
  end)
end
if not ours then
  return -1
elseif free and not heard and not (ok and transferred) then
  publish()
end
return 0
