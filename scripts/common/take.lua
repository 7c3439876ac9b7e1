-- Common part of the scripts that take a lock.

-- Makes the hash of a free lock, from fields and values, with its TTL. A user who may not set a
-- TTL must not leave a lock without one: the hash is then deleted again.
local function take(hash, lease, ...)
  redis.call('HSET', hash, ...)
  if type(redis.pcall('PEXPIRE', hash, lease)) == 'table' then
    for i = 1, select('#', ...), 2 do
      redis.call('HDEL', hash, (select(i, ...)))
    end
    redis.call('PEXPIRE', hash, lease) -- fails the script with the same error
  end
end
