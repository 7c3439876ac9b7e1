-- Yields a read/write lock at the hand-off limit: releases it if other clients wait, otherwise renews
-- its lease. The owner has no holder at this moment, only local waiters.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner
-- ARGV[2]  how many of the channel's subscribers are this client
-- ARGV[3]  lease, ms
-- ARGV[4]  "1" forces the yield to clients outside the line, even if none is seen to wait: some
--          wait without subscribing
-- ARGV[5]  the prefix of the keys of read leases
-- ARGV[6]  the lock's channel
-- ARGV[7]  the key of the line
-- ARGV[8]  the settings of the line
-- ARGV[9]  the place at the end of the line that the client takes, or ""
--
-- Reply: {ABSENT, 0}       the owner does not hold the lock
--        {KEPT, 0}         it keeps the lock in its mode, with hold count 1; the lease starts now
--        {RELEASED, open}  it has released the lock; open is 1 if the lock is free now and left to
--                          clients outside the line, else 0. Without a place, it is how many of
--                          those wait
local hash, owner, prefix, channel, place = KEYS[1], ARGV[1], ARGV[5], ARGV[6], ARGV[9]
local held = redis.call('HMGET', hash, owner, owner .. ':write')
if not held[1] and not held[2] then
  return {ABSENT, 0}
end
local fields = beside('HGETALL', ARGV[7]) or {}
local line = line_of(fields, ARGV[7], ARGV[8], hash, owner, '', give_to(hash, prefix))
local length, strangers = line.length(line.client), line.strangers(channel, ARGV[2])
if length > 0 or strangers > 0 or ARGV[4] == '1' then
  local free, open = leave(hash, owner, prefix, held[1]), 0
  line.leave(string.match(place, '^%d+'))
  if free and not line.hand_over(length, strangers, ARGV[4] == '1', place ~= '') then
    redis.call('PUBLISH', channel, held[2] and '1' or '0')
    open = 1
  end
  line.enter(place, true)
  return {RELEASED, place == '' and strangers or open}
end
hold(hash, owner, held[2] and 1 or 0, held[2] and 0 or 1, tonumber(ARGV[3]), prefix, false, held[1])
return {KEPT, 0}
