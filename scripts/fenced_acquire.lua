-- Takes a fenced lock for its owner, or sets how many times the owner holds it, and
-- reserves fencing tokens. A lost reply wastes its tokens: the request, sent again,
-- reserves later ones.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- KEYS[2]  the counter of its tokens
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
-- ARGV[4]  how many tokens to reserve
--
-- Reply: {1, token, ""}   the owner holds the lock; the last token reserved, 0 if none was
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
local token = 0
if ARGV[4] ~= '0' then
  token = redis.call('INCRBY', KEYS[2], ARGV[4])
end
-- Redisson's MultiLock puts a TTL on it, after which the tokens would begin anew.
redis.call('PERSIST', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, token, ''}
