-- Gives permits back, whichever client has taken them, unless the number of permits is no longer set. A late
-- command does so too: no two permits have the same id, and a permit cannot be given back twice. Commands
-- of an actor that was abandoned may arrive after those of the next.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel. As Redisson does, for one permit the number of free ones is published, for
--          several how many they are; nothing if none is free
-- ARGV[3…] the ids, at most 32
--
-- Reply: {which of them were taken until now, 1 for the first, plus 2 for the second, plus 4 …; how
-- many clients received the publication}
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
  local free, received = count_of(KEYS[1]), 0
  if free then
    free = free + #ids
    check_permits(free)
  end
  if free and free > 0 then
    received = redis.call('PUBLISH', ARGV[2], #ids == 1 and free or #ids)
  end
  return {taken, received}, function()
    if free then
      redis.call('INCRBY', KEYS[1], #ids)
    end
    redis.call('ZREM', KEYS[2], unpack(ids))
  end
end, true)
