-- Takes a lock on one of several independent servers, or sets how many times its owner
-- holds it. A server that was restarted may have forgotten locks, and stays out until
-- all of them would have run out.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
-- ARGV[4]  for how many ms a server stays out after its start; 0: it does not
--
-- Reply: {1, 0, ""}       the owner holds the lock that many times, for the lease from now on
--        {0, ttl, other}  somebody else holds it, for ttl more ms (-1: without an end)
--        {-1, 0, ""}      nobody holds it, so there is nothing to re-enter
--        {-3, left, ""}   the server stays out for that many more ms
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  if ARGV[4] ~= '0' then
    -- The uptime is a difference of whole seconds, so it may be almost one too long.
    local uptime = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
    local out = ARGV[4] - (uptime - 1) * 1000
    if out > 0 then
      return {-3, out, ''}
    end
  end
  local left = redis.call('PTTL', KEYS[1])
  if left ~= -2 then
    return {0, left, redis.call('HRANDFIELD', KEYS[1])}
  elseif ARGV[2] ~= '1' then
    return {-1, 0, ''}
  end
  take(KEYS[1], ARGV[3], ARGV[1], '1')
  return {1, 0, ''}
end
-- Before the count: a server out of memory refuses no write after the first.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {1, 0, ''}
