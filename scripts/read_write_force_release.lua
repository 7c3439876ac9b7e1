-- Ends the holds of the named owners on a read/write lock that is held in the given mode; see
-- force_release.lua. The lock is free if no other reader is left.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  the prefix of the keys of read leases
-- ARGV[2]  the mode, "read" or "write"
-- ARGV[3]  the lock's channel
-- ARGV[4…] the owners
--
-- Reply: 1 if one of them held it in that mode, else 0.
check_lock(KEYS[1])
if value_of(KEYS[1], 'mode') ~= ARGV[2] then
  return 0
end
local held = false
for i = 4, #ARGV do
  local reads, writes = value_of(KEYS[1], ARGV[i]), value_of(KEYS[1], ARGV[i] .. ':write')
  if is_owner(ARGV[i]) and (reads or writes) then
    end_holds(KEYS[1], ARGV[i], ARGV[1], reads)
    held = true
  end
end
if held and is_over(KEYS[1], ARGV[1]) then
  redis.call('PUBLISH', ARGV[3], ARGV[2] == 'write' and '1' or '0')
end
return held and 1 or 0
