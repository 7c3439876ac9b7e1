-- Ends the holds of the named owners on a read/write lock that is held in the given mode, or on a lock of
-- another kind, which has no mode; see force_release.lua. The lock is free if no other reader is left.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  the prefix of the keys of read leases
-- ARGV[2]  the mode, "read" or "write"
-- ARGV[3]  the lock's channel
-- ARGV[4…] the owners
--
-- Reply: 1 if one of them held it so, else 0.
check_lock(KEYS[1])
local mode, held, over = value_of(KEYS[1], 'mode'), false, nil
if not mode then
  held = end_named(KEYS[1], 4)
  over = held
elseif mode == ARGV[2] then
  for i = 4, #ARGV do
    local reads, writes = value_of(KEYS[1], ARGV[i]), value_of(KEYS[1], ARGV[i] .. ':write')
    if is_owner(ARGV[i]) and (reads or writes) then
      end_holds(KEYS[1], ARGV[i], ARGV[1], reads)
      held = true
    end
  end
  over = held and is_over(KEYS[1], ARGV[1])
end
if over then
  redis.call('PUBLISH', ARGV[3], ARGV[2] == 'write' and '1' or '0')
end
return held and 1 or 0
