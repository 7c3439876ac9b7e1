-- Yields a lock at the hand-off limit: releases it if other clients wait, otherwise renews
-- its lease. The owner has no holder at this moment, only local waiters.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner
-- ARGV[2]  lease, ms
-- ARGV[3]  "1" forces the yield to clients outside the line, even if none is seen to wait: some
--          wait without subscribing
-- ARGV[4]  the lock's channel
-- ARGV[5]  the key of the line
-- ARGV[6]  the settings of the line
-- ARGV[7]  the key of the counter of its tokens
-- ARGV[8]  the place at the end of the line that the client takes, or ""
--
-- Reply: {ABSENT, 0}       the owner does not hold the lock
--        {KEPT, 0}         it keeps the lock, with hold count 1; the lease starts now
--        {RELEASED, open}  it has released the lock; open is 1 if the lock is left to clients outside
--                          the line, else 0
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {ABSENT, 0}
end
local forced, channel, place = ARGV[3] == '1', ARGV[4], ARGV[8]
local fields = entries_of(ARGV[5]) or {}
local line = line_of(fields, ARGV[5], ARGV[6], KEYS[1], ARGV[1], ARGV[7], give_to(KEYS[1]))
local length, strangers = line.length(), line.strangers(channel)
if length > 0 or strangers > 0 or forced then
  redis.call('HDEL', KEYS[1], ARGV[1])
  line.leave(line.term(place))
  local passed, open = line.hand_over(length, strangers, true, forced)
  if not passed then
    redis.call('PUBLISH', channel, '0')
  end
  line.enter(place, true)
  return {RELEASED, open and 1 or 0}
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1], '1')
return {KEPT, 0}
