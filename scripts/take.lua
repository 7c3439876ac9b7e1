-- What the scripts that take a lock have in common; it stands before each of them.

-- Makes the hash of a lock that nobody holds, from fields and values, with its TTL. A user
-- who may set no TTL must not leave a lock without an end: it is taken back.
local function take(hash, lease, ...)
  redis.call('HSET', hash, ...)
  if type(redis.pcall('PEXPIRE', hash, lease)) == 'table' then
    for i = 1, select('#', ...), 2 do
      redis.call('HDEL', hash, (select(i, ...)))
    end
    redis.call('PEXPIRE', hash, lease) -- fails the script with the same error
  end
end
