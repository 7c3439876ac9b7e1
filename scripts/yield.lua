-- Yields a lock at the hand-off limit: releases it if other clients wait, otherwise renews
-- its lease. The owner has no holder at this moment, only local waiters.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner
-- ARGV[2]  how many of the channel's subscribers are this client
-- ARGV[3]  lease, ms
-- ARGV[4]  "1" forces the yield to clients outside the line, even if none is seen to wait: some
--          wait without subscribing
-- ARGV[5]  the lock's channel
-- ARGV[6]  the key of the line
-- ARGV[7]  the settings of the line
-- ARGV[8]  the key of the counter of its tokens
-- ARGV[9]  the place at the end of the line that the client takes, or ""
--
-- Reply: {ABSENT, 0}       the owner does not hold the lock
--        {KEPT, 0}         it keeps the lock, with hold count 1; the lease starts now
--        {RELEASED, open}  it has released the lock; open is 1 if the lock is left to clients outside
--                          the line, else 0. Without a place, it is how many of those wait
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {ABSENT, 0}
end
local forced, place = ARGV[4] == '1', ARGV[9]
local fields = beside('HGETALL', ARGV[6]) or {}
local line = line_of(fields, ARGV[6], ARGV[7], KEYS[1], ARGV[1], ARGV[8], give_to(KEYS[1]))
local length, strangers = line.length(line.client), line.strangers(ARGV[5], ARGV[2])
if length > 0 or strangers > 0 or forced then
  redis.call('HDEL', KEYS[1], ARGV[1])
  line.leave(string.match(place, '^%d+'))
  local passed = line.hand_over(length, strangers, forced, place ~= '')
  if not passed then
    redis.call('PUBLISH', ARGV[5], '0')
  end
  line.enter(place, true)
  return {RELEASED, place == '' and strangers or passed and 0 or 1}
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], '1')
return {KEPT, 0}
