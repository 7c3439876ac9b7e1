-- Frees a read/write lock that is held in the given mode, whoever holds it.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  the prefix of the keys of read leases
-- ARGV[2]  the mode, "read" or "write"
-- ARGV[3]  the lock's channel
--
-- Reply: 1 if it was held in that mode, else 0.
check_lock(KEYS[1])
if redis.call('HGET', KEYS[1], 'mode') ~= ARGV[2] then
  return 0
end
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  for n = 1, tonumber(fields[i + 1]) or 0 do
    beside('DEL', lease_key(ARGV[1], fields[i], n))
  end
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[3], ARGV[2] == 'write' and '1' or '0')
return 1
