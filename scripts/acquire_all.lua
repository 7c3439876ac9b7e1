-- Takes several locks for one owner, each with hold count 1: all or none.
--
-- KEYS[3i-2], KEYS[3i-1], KEYS[3i]
--          of the i-th lock, by its kind
--            plain, read, write  hash, hash, hash
--            fenced              hash, counter of tokens, hash
--            fair                hash, queue, timeouts
--          These must be KEYS: locks that one script takes must be on one server
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  lease, ms
-- ARGV[3]  how many tokens to reserve of each fenced lock
-- ARGV[4]  the settings of the lines
-- ARGV[2+3i], ARGV[3+3i], ARGV[4+3i]
--          the kind of the i-th lock; for a read/write lock also the prefix of the keys of its
--          read leases; and the key of its line
--
-- Reply: {GRANTED, 0, tokens, ""}      the owner holds all; the lease starts now. tokens lists the
--                                      last token reserved of each fenced lock, in order: "5,9"
--        {REFUSED, ttl, other, index}  other holds the lock of that index, from 1, for ttl more ms
--                                      (-1: no TTL). If the lock is free but its queue has a live
--                                      waiter, other is "", and the first of these counts as dead
--                                      in ttl ms
local owner, lease, tokens = ARGV[1], tonumber(ARGV[2]), {}
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- In how many ms the first live waiter of the queue counts as dead; nil if there is none.
local function queued(queue, timeouts)
  for _, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    local score = tonumber(redis.call('ZSCORE', timeouts, waiter) or 0)
    if score > now then
      return score - now
    end
  end
end

-- Reports whether a writer of another client waits for the lock.
local function writer_waits(lock)
  local fields = beside('HGETALL', lock.line)
  return fields and fields[1] and line_of(fields, lock.line, ARGV[4], lock.hash, owner, '').writer_waits()
end

-- The first pass changes nothing. It also fails if a key is of another type.
local locks = {}
for i = 1, #KEYS / 3 do
  local lock = {
    hash = KEYS[3 * i - 2], second = KEYS[3 * i - 1], third = KEYS[3 * i],
    kind = ARGV[2 + 3 * i], prefix = ARGV[3 + 3 * i], line = ARGV[4 + 3 * i], field = owner,
  }
  locks[i] = lock
  if lock.kind == 'write' then
    lock.field = owner .. ':write'
  end
  local left = redis.call('PTTL', lock.hash)
  if left == -2 then
    lock.free = true
    if lock.kind == 'fair' then
      local alive = queued(lock.second, lock.third)
      if alive then
        return {REFUSED, alive, '', tostring(i)}
      end
      lock.queue_is_dead = true -- every waiter in it is dead
    end
  elseif redis.call('HEXISTS', lock.hash, lock.field) == 0 then
    local shared = lock.kind == 'read' and redis.call('HGET', lock.hash, 'mode') == 'read'
    if not shared or writer_waits(lock) then
      local some = redis.call('HRANDFIELD', lock.hash, 2)
      return {REFUSED, left, some[1] == 'mode' and some[2] or some[1], tostring(i)}
    end
  end
end

-- The second takes all. Tokens come first: if a counter is no counter, nothing is taken.
for _, lock in ipairs(locks) do
  if lock.kind == 'fenced' then
    tokens[#tokens + 1] = string.format('%.0f', redis.call('INCRBY', lock.second, ARGV[3]))
    redis.call('PERSIST', lock.second)
  end
end
for _, lock in ipairs(locks) do
  local fields = {lock.field, '1'}
  if lock.queue_is_dead then
    redis.call('DEL', lock.second, lock.third)
  elseif lock.kind == 'write' then
    fields[3], fields[4] = 'mode', 'write'
  elseif lock.kind == 'read' then
    if lock.free then
      fields[3], fields[4] = 'mode', 'read'
    end
    redis.call('SET', lock.prefix .. ':' .. owner .. ':rwlock_timeout:1', '1', 'PX', lease)
  end
  if lock.free then
    take(lock.hash, lease, unpack(fields))
  else
    local left = lock.kind == 'read' and redis.call('PTTL', lock.hash) or 0
    redis.call('PEXPIRE', lock.hash, math.max(left, lease)) -- others may read under a longer one
    redis.call('HSET', lock.hash, unpack(fields))
  end
end
return {GRANTED, 0, table.concat(tokens, ','), ''}
