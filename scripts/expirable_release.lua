-- Gives permits back, unless no number of them is set any more, whoever has taken them. A late command does so, too: no permit is taken twice
-- under an id, and one that is back is not given back again. Those of an actor that was given up may
-- come after commands of the next.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel, on which is published as Redisson does: of one permit how many are free
--          now, of several how many they are; nothing if none is free
-- ARGV[3…] the ids, at most 32
--
-- Reply: {which of them were taken until now, 1 for the first, plus 2 for the second, plus 4 …; how
-- many clients have heard of it}
return once(KEYS[3], ARGV[1], function()
  local taken, ids, bit = 0, {}, 1
  for i = 3, #ARGV do
    if redis.call('ZSCORE', KEYS[2], ARGV[i]) and not ids[ARGV[i]] then
      taken, ids[ARGV[i]] = taken + bit, true
      table.insert(ids, ARGV[i])
    end
    bit = 2 * bit
  end
  if taken == 0 then
    return {0, 0}
  end
  redis.call('ZREM', KEYS[2], NO_PERMIT)
  local free, heard = count_of(KEYS[1]), 0
  if free then
    free = free + #ids
    check_permits(free)
  end
  if free and free > 0 then
    heard = redis.call('PUBLISH', ARGV[2], #ids == 1 and free or #ids)
  end
  return {taken, heard}, function()
    if free then
      redis.call('INCRBY', KEYS[1], #ids)
    end
    redis.call('ZREM', KEYS[2], unpack(ids))
  end
end, true)
