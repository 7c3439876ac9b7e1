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

local hash = KEYS[1]
local owner, count, lease, channel, queue_key, settings, counter = unpack(ARGV)

-- Most releases end here: the wait queue is empty. The hash has only one field, so deleting the field deletes the key,
-- unless another application has added some.
local freed = count == '0' and redis.call('HDEL', hash, owner) == 1
local keys = freed and redis.pcall('EXISTS', hash, queue_key)
-- Whether foreign clients have heard that the lock is free. Most often no client has, so that costs no command.
local heard = false
if keys == 0 then
  if redis.call(PUBLISH, channel, '0') > 0 then
    local n = redis.pcall('PUBSUB', NUMSUB, channel, WAITERS_CHANNEL .. string.sub(queue_key, #WAIT_QUEUE_KEY + 1))
    heard = not n.err and n[2] > n[4]
  end
  if not heard then
    return 0
  end
end

local entries = count == '0' and redis.pcall('HLEN', queue_key) or 0
-- Whether the hash has fields of another application; true also if that is not known.
local foreign = freed and (keys ~= 1 or entries == 0)
-- A key of another type does not keep the lock from being released.
local size = type(entries) == 'number' and entries or 0

--- include common/transfer_to_first.lua

-- Most releases of contended locks end here.
if freed and not foreign and size > 0 and transfer_to_first(hash, owner, channel, queue_key, settings, size) then
  return 0
end

--- include common/foreign_fields.lua
--- include common/wait_queue.lua

if foreign then
  keep_foreign(hash)
end
if count == '0' then
  -- The lock is released even if the wait queue is malformed.
  local ok, transferred = true, false
  if size > 0 or heard then
    ok, transferred = pcall(function()
      local queue = wait_queue(size, queue_key, settings, plain_lock(hash, counter), owner)
      if not freed then
        return queue.withdraw()
      end
      queue.leave()
      return queue.end_turn(queue.others())
    end)
  end
  if not freed then
    return -1
  elseif not heard and not (ok and transferred) then
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
