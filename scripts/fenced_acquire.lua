-- Takes a fenced lock for its owner, or sets how many times the owner holds it, and
-- reserves fencing tokens. A lost reply wastes its tokens: the request, sent again,
-- reserves later ones.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
-- ARGV[4]  how many tokens to reserve
-- ARGV[5]  the key of the counter of its tokens
--
-- Reply: {1, token, ""}   the owner holds the lock; the last token reserved, 0 if none was
--        {2, 0, ""}       the owner holds the lock; its tokens are left to draw.lua, since
--                         the counter may be on another server
--        {0, ttl, other}  somebody else holds it, for ttl more ms (-1: without an end)
--        {-1, 0, ""}      nobody holds it, so there is nothing to re-enter
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  if ARGV[2] ~= '1' then
    return {-1, 0, ''}
  end
elseif redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {0, left, redis.call('HRANDFIELD', KEYS[1])}
end
-- The counter comes first: if it is of another type, the lock stays as it is.
local status, token = 1, 0
if ARGV[4] == '0' then
  beside('PERSIST', ARGV[5]) -- Redisson's MultiLock puts a TTL on it
else
  local ends = beside('PTTL', ARGV[5])
  if not ends or ends == -2 and not beside('EXISTS', KEYS[1], ARGV[5]) then
    status = 2 -- a counter that began anew here would give tokens out twice
  else
    token = redis.call('INCRBY', ARGV[5], ARGV[4])
    if ends >= 0 then
      redis.call('PERSIST', ARGV[5])
    end
  end
end
if left == -2 then
  take(KEYS[1], ARGV[3], ARGV[1], '1')
else
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return {status, token, ''}
