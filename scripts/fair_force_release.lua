-- Frees a fair lock, whoever holds it. Its queue stays, and its first waiter is told.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- KEYS[2]  its queue, a list of owners
-- KEYS[3]  its timeouts, a sorted set: owner -> when it counts as dead, epoch ms
-- KEYS[4]  how its channels begin; each waiter listens on its own, KEYS[4]:owner
--
-- Reply: 1 if it was held, else 0. HLEN keeps a key of another type from being deleted.
local held = redis.call('HLEN', KEYS[1]) > 0
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local first = redis.call('LINDEX', KEYS[2], 0)
local evicted = false
while first do
  local score = redis.call('ZSCORE', KEYS[3], first)
  if score and tonumber(score) > now then
    break
  end
  redis.call('LPOP', KEYS[2])
  redis.call('ZREM', KEYS[3], first)
  first, evicted = redis.call('LINDEX', KEYS[2], 0), true
end
if held then
  redis.call('DEL', KEYS[1])
end
if first and (held or evicted) then
  redis.call('PUBLISH', KEYS[4] .. ':' .. first, '0')
end
return held and 1 or 0
