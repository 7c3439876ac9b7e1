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

--- include common/take.lua

-- Most releases of contended locks end here: only processes that listen wait, and the first of them gets the lock. This
-- does the same as the rest of the script, and leaves rarer cases and all errors to it. So a release takes 0.4 of the CPU
-- time in Redis: 26 µs, not 66; with parse_entry it would be 30. To compare transfer-32 with transfer-full-32:
-- go test -run '^$' -bench WaitQueue/transfer ./scripts
if freed and not foreign and size > 0 then
  local ok, done = pcall(function()
    local order = string.gsub(queue_key, 'queue', 'order', 1)
    -- Each entry has two members in the sorted set. The clients that do not listen come first, then the times at which
    -- entries expire, then the clients that listen. So if there are two members for each field, all fields are entries;
    -- and if all clients listen, the first of them is in the middle.
    local client = redis.call('ZCARD', order) == 2 * size and redis.call('ZRANGE', order, size, size)[1]
    local found = client and redis.call('HMGET', queue_key, client, (string.match(owner, '^[^:]*'))) or {}
    local _, seen, ttl, term, seq, mode, tokens, listens = string.match(found[1] or '', STORED_ENTRY)
    local open_time, every = string.match(settings, '^(%d+) 1 (%d+)$')
    if not seen or mode ~= '0' or tokens ~= '0' or listens ~= '1'
      or #client ~= 36 or #ttl > 13 or tonumber(ttl) > MAX_ENTRY_TTL
      or not open_time or found[2] then -- the client's own entry has to go too
      return false
    end
    local clock = redis.call('TIME')
    local now = clock[1] * 1000000 + clock[2]
    if math.abs(now - seen) >= ttl * 1000 or every ~= '0' and now / 1000 % every < math.min(open_time, every / 100) then
      return false
    end
    local turn = TURN_CHANNEL .. client
    local waiters = WAITERS_CHANNEL .. string.sub(queue_key, #WAIT_QUEUE_KEY + 1)
    local n = redis.call('PUBSUB', NUMSUB, turn, channel, waiters)
    if n[2] == 0 or n[4] > n[6] then
      return false
    end
    redis.call('ZREM', order, client, '-' .. client)
    redis.call('HDEL', queue_key, client)
    take(hash, ttl, client .. ':' .. term, '1')
    redis.call(PUBLISH, turn, term .. ' ' .. seq .. ' 0 ' .. hash)
    return true
  end)
  if ok and done then
    return 0
  end
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
