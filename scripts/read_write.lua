-- What the scripts of the read/write lock have in common; it stands before each of them.
--
-- The lock is a hash: "mode" -> "read" or "write", owner -> its read holds, owner:write ->
-- its write holds. Each read hold has a key beside the hash that lives as long as its
-- lease. A waiting writer announces itself in a key that Redisson does not know.

local function client(owner)
  return string.match(owner, '^[^:]*')
end

local function lease_key(prefix, owner, i)
  return prefix .. ':' .. owner .. ':rwlock_timeout:' .. i
end

-- Sets how often the owner holds the lock, which is not more than one of several that
-- read, and for how long.
local function hold(hash, owner, writes, reads, lease, prefix)
  local before = tonumber(redis.call('HGET', hash, owner) or 0)
  local left = redis.call('PTTL', hash)
  redis.call('HSET', hash, 'mode', writes > 0 and 'write' or 'read')
  for field, count in pairs({[owner] = reads, [owner .. ':write'] = writes}) do
    if count > 0 then
      redis.call('HSET', hash, field, count)
    else
      redis.call('HDEL', hash, field)
    end
  end
  for i = 1, reads do
    redis.call('SET', lease_key(prefix, owner, i), '1', 'PX', lease)
  end
  for i = reads + 1, before do
    redis.call('DEL', lease_key(prefix, owner, i))
  end
  local alone = redis.call('HLEN', hash) == 1 + math.min(writes, 1) + math.min(reads, 1)
  redis.call('PEXPIRE', hash, alone and lease or math.max(left, lease))
end

-- Ends all that the owner holds. Tells whether the lock is free now.
local function leave(hash, owner, prefix)
  local reads = redis.call('HGET', hash, owner)
  for i = 1, tonumber(reads or 0) do
    redis.call('DEL', lease_key(prefix, owner, i))
  end
  redis.call('HDEL', hash, owner, owner .. ':write')
  -- The lock lasts as long as the longest hold that is left. A reader without a live
  -- lease is dead: Redisson ends the lock over its head as well.
  local longest, fields = 0, redis.call('HGETALL', hash)
  for i = 1, #fields, 2 do
    for n = 1, tonumber(fields[i + 1]) or 0 do
      longest = math.max(longest, redis.call('PTTL', lease_key(prefix, fields[i], n)))
    end
  end
  if longest > 0 then
    redis.call('PEXPIRE', hash, longest)
    return false
  end
  redis.call('DEL', hash)
  return true
end

-- Withdraws the owner's announcement.
local function withdraw(intent, owner)
  if redis.call('GET', intent) == owner then
    redis.call('DEL', intent)
  end
end

-- Whether a writer of another client has announced itself.
local function announced(intent, mine)
  local writer = redis.call('GET', intent)
  return writer and client(writer) ~= mine
end

-- How many clients besides this one wait for the lock. An announced writer waits even
-- if it is not seen on the channel.
local function others(channel, intent, mine, subscribers)
  local seen = redis.call('PUBSUB', 'NUMSUB', channel)[2] - subscribers
  return math.max(seen, announced(intent, mine) and 1 or 0)
end
