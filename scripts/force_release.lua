-- Frees a lock if one of the named owners holds it. The sender names the owners that it has seen to hold
-- the lock, so a late copy of the command ends no other hold.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the lock's channel
-- ARGV[2…] the owners
--
-- Reply: 1 if one of them held it, else 0

--- include common/force.lua

local hash, channel = KEYS[1], ARGV[1]
if not end_named(hash, 2) then
  return 0
end
redis.call(PUBLISH, channel, '0')
return 1
