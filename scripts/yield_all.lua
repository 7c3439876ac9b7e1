-- Yields several locks that one owner has taken together: ends its holds, transfers each lock that becomes free,
-- and adds an entry at the end of all wait queues. One script does that, so that clients that want several locks
-- have the same order in all of their wait queues.
--
-- KEYS[i]  the hash of the i-th lock
-- ARGV[1]  owner
-- ARGV[2]  the settings of the wait queues
-- ARGV[3]  the entry that the client adds, or ""
-- ARGV[4i], ARGV[1+4i], ARGV[2+4i], ARGV[3+4i]
--          the kind of the i-th lock: plain, fenced, read, or write; the prefix of the keys of its
--          read leases for a read/write lock, or the key of its token counter; the key of its wait
--          queue; and its channel
--
-- Reply: {RELEASED, 0}  the owner held all locks
--        {ABSENT, 0}    it did not; those that it held are released

--- include common/other_keys.lua
--- include common/hash_values.lua
--- include common/foreign_fields.lua
--- include common/wait_queue_entries.lua
--- include common/wait_queue.lua
--- include common/read_write.lua

local owner, settings, entry = ARGV[1], ARGV[2], ARGV[3]
local sizes = {} -- of all wait queues, before the first write: one may be another application's key
for i in ipairs(KEYS) do
  sizes[i] = size_of(ARGV[2 + 4 * i])
  call_if_here('ZCARD', order_of(ARGV[2 + 4 * i]))
end

local held_all, entered = true, {} -- entered: the wait queues that get the entry
for i, hash in ipairs(KEYS) do
  local kind, prefix, queue_key, channel = ARGV[4 * i], ARGV[1 + 4 * i], ARGV[2 + 4 * i], ARGV[3 + 4 * i]
  local is_read_write = kind == 'read' or kind == 'write'
  local held, free, wrote -- whether the owner held the lock, it is free now, and the owner was a writer
  if is_read_write then
    local mine = redis.call('HMGET', hash, owner, owner .. ':write')
    held, wrote = mine[1] or mine[2], mine[2]
    free = held and leave(hash, owner, prefix, mine[1])
  else
    held = redis.call('HDEL', hash, owner) == 1
    free = held
    if held then
      keep_foreign(hash)
    end
  end
  held_all = held_all and held
  local size, transferred = sizes[i], false
  if size then
    local lock = (is_read_write and read_write_lock or plain_lock)(hash, prefix)
    local queue = wait_queue(size, queue_key, settings, lock, owner)
    local joins = not held and is_read_write and value_of(hash, 'mode') == 'read'
    if held then
      queue.leave()
      transferred = free and queue.end_turn(queue.others())
    elseif entry ~= '' and not joins then
      queue.leave()
      queue.transfer_expired()
    else
      queue.withdraw(joins)
    end
    entered[#entered + 1] = {queue = queue, entry = entry_for(kind, entry)}
  end
  if free and not transferred then
    redis.call(PUBLISH, channel, wrote and '1' or '0')
  end
end
for _, last in ipairs(entered) do
  last.queue.enter(last.entry, true)
end
return {held_all and RELEASED or ABSENT, 0}
