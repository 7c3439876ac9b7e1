-- Gives back the permits of some holds, whichever client has taken them, unless the number of permits is no longer set.
-- A late command does so too: no two permits have the same id, and a permit cannot be given back twice. The commands of
-- an abandoned actor may arrive after the next actor's.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel. As Redisson does, for one permit the number of free ones is published, for
--          several how many they are; nothing if none is free
-- ARGV[3]  the key of a waiting "restore", which may not exist; see restore.lua. While no number is set, permits that
--          are given back have not vanished, and hold it up no further
-- ARGV[4…] for each of at most 32 holds: how many permits it has, and their ids
--
-- Reply: {the sum of 1 if all permits of the first hold were taken until now, 2 for the second hold, 4 for the third,
-- and so on; how many clients received the publication}

--- include common/once.lua
--- include common/counts.lua
--- include common/clock.lua
--- include common/expirable.lua
--- include common/restore.lua

local free_key, taken_key, record = KEYS[1], KEYS[2], KEYS[3]
local command, channel, restore_key = unpack(ARGV, 1, 3)
return once(record, command, function()
  check_taken(taken_key)
  local taken, ids, given = 0, {}, {} -- given: whether an id is in ids already
  local begin, bit = 4, 1 -- where a hold begins in ARGV, and its bit in the reply
  while ARGV[begin] do
    local all, last = true, begin + ARGV[begin]
    for i = begin + 1, last do
      local id = ARGV[i]
      local ends = tonumber(redis.call('ZSCORE', taken_key, id) or -1)
      if ends >= 0 and not given[id] then -- members with a negative time are ignored
        given[id] = true
        ids[#ids + 1] = id
      else
        all = false
      end
    end
    taken = taken + (all and bit or 0)
    begin, bit = last + 1, 2 * bit
  end
  if #ids == 0 then
    return {0, 0}
  end
  redis.call('ZREM', taken_key, NO_PERMIT)
  local free, received = count_of(free_key), 0
  if free then
    free = free + #ids
    check_permits(free)
  end
  if free and free > 0 then
    received = redis.call(PUBLISH, channel, #ids == 1 and free or #ids)
  end
  local memory, at, seen
  if not free then
    memory, at, seen = restore_of(restore_key, epoch_ms())
  end
  return {taken, received}, function()
    if free then
      redis.call('INCRBY', free_key, #ids)
    elseif memory then
      put_restore(restore_key, memory, at, seen - #ids, 'KEEPTTL')
    end
    redis.call('ZREM', taken_key, unpack(ids))
  end
end, true)
