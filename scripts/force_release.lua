-- Frees a lock if one of the named owners holds it. The sender names the owners that it has seen to hold
-- the lock, so a late copy of the command ends no other hold.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the lock's channel
-- ARGV[2…] the owners
--
-- Reply: 1 if one of them held it, else 0
check_lock(KEYS[1])
local held = false
for i = 2, #ARGV do
  held = is_owner(ARGV[i]) and redis.call('HDEL', KEYS[1], ARGV[i], ARGV[i] .. ':write') > 0 or held
end
if not held then
  return 0
end
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('HDEL', KEYS[1], 'mode') -- it was a read/write lock
end
redis.call('PUBLISH', ARGV[1], '0')
return 1
