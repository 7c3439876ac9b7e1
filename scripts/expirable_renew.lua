-- Gives the permits of a process a lease that starts now. A permit that has expired is not renewed,
-- even if it has not been taken since.
--
-- KEYS[1]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- ARGV[1]  the lease, ms
-- ARGV[2…] the ids
--
-- Reply: a text that has for each of them "1" if it was renewed, or "0"

--- include common/clock.lua
--- include common/expirable.lua

local taken_key, lease = KEYS[1], ARGV[1]
redis.call('ZREM', taken_key, NO_PERMIT) -- a server out of memory refuses no write after the first
local now, renewed = epoch_ms(), {}
for i = 2, #ARGV do
  local until_ms = redis.call('ZSCORE', taken_key, ARGV[i])
  local valid = until_ms and tonumber(until_ms) > now
  if valid then
    redis.call('ZADD', taken_key, 'XX', now + lease, ARGV[i])
  end
  renewed[i - 1] = valid and '1' or '0'
end
return table.concat(renewed)
