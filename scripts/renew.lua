-- Renews the leases of many locks at once.
--
-- KEYS[i]      the lock's hash: owner -> hold count
-- ARGV[2i-1]   its owner
-- ARGV[2i]     its lease, ms
--
-- Reply, one number a lock: 1 renewed, 0 the key is gone, -1 it belongs to somebody else.
-- A key of another type is somebody else's; it must not fail the locks beside it. Any
-- other error says nothing about the locks, and is the reply.
local renewed = {}
for i, key in ipairs(KEYS) do
  local mine = redis.pcall('HEXISTS', key, ARGV[2 * i - 1])
  if type(mine) == 'table' and not string.find(mine.err, 'WRONGTYPE', 1, true) then
    return mine
  elseif mine == 1 then
    renewed[i] = redis.call('PEXPIRE', key, ARGV[2 * i])
  elseif mine == 0 and redis.call('EXISTS', key) == 0 then
    renewed[i] = 0
  else
    renewed[i] = -1
  end
end
return renewed
