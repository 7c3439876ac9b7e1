-- Continues common/release_unwanted.lua, which names the arguments, and defines freed, foreign and size.
--
-- Releases a lock, or sets the hold count that is left. The first client in the wait queue gets a lock that
-- becomes free.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner
-- ARGV[2]  the hold count wanted; 0 frees the lock, and removes the client from the wait queue
-- ARGV[3]  lease in ms if the lock stays held
-- ARGV[4]  the lock's channel
-- ARGV[5]  the key of the wait queue
-- ARGV[6]  the settings of the wait queue
-- ARGV[7]  the key of its token counter
--
-- Reply: the hold count that is left, or -1 if the owner does not hold the lock. If no client
-- in the wait queue gets the lock, its release is published on the channel. The same applies to a lock that is free
-- already: it was reserved for the client, which stops waiting, or the hold has expired.
if foreign then
  keep_foreign(hash)
end
if count == '0' then
  -- The lock is released even if the wait queue is malformed.
  local ok, passed = true, false
  if size > 0 then
    ok, passed = pcall(function()
      local queue = wait_queue(size, queue_key, settings, hash, owner, counter, give_plain(hash))
      if not freed then
        return queue.withdraw()
      end
      queue.leave()
      return queue.hand_over(queue.others())
    end)
  end
  if not freed then
    return -1
  elseif not ok or not passed then
    redis.call(PUBLISH, channel, '0')
  end
  return 0
end
if redis.call('HEXISTS', hash, owner) == 0 then
  return -1
end
-- Before the count: a server out of memory refuses no write after the first.
redis.call('PEXPIRE', hash, lease)
redis.call('HSET', hash, owner, count)
return tonumber(count)
