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

--- include common/foreign_hash.lua
--- include common/hash_values.lua
--- include common/read_write.lua
--- include common/force.lua

local hash = KEYS[1]
local prefix, given_mode, channel = ARGV[1], ARGV[2], ARGV[3]
check_lock(hash)
local mode, held, over = value_of(hash, 'mode'), false, nil
if not mode then
  held = end_named(hash, 4)
  over = held
elseif mode == given_mode then
  local ended = {}
  for i = 4, #ARGV do
    local reads, writes = count_in(hash, ARGV[i]), count_in(hash, ARGV[i] .. ':write')
    if is_owner(ARGV[i]) and (reads or writes) then
      end_leases(ARGV[i], prefix, reads)
      ended[#ended + 1] = reads and ARGV[i]
      ended[#ended + 1] = writes and ARGV[i] .. ':write'
    end
  end
  held = ended[1] ~= nil
  over = held and end_holds(hash, prefix, ended)
end
if over then
  redis.call(PUBLISH, channel, given_mode == 'write' and '1' or '0')
end
return held and 1 or 0
