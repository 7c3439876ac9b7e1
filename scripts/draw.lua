-- Reserves fencing tokens of a lock that its owner holds, after fenced_acquire could not.
--
-- KEYS[1]  the counter of the lock's tokens
-- ARGV[1]  how many tokens to reserve
--
-- Reply: {GRANTED, token, ""}  the last token reserved, as in fenced_acquire
local token = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('PERSIST', KEYS[1])
return {GRANTED, token, ''}
