-- Renews the leases of many locks at once.
--
-- KEYS[i]      the lock's hash: owner -> hold count
-- ARGV[2i-1]   its owner
-- ARGV[2i]     its lease, ms
--
-- Reply, one number per lock: RENEWED, GONE if there is no key, TAKEN if it belongs to another
-- owner. A key of another type counts as TAKEN; it must not fail the other locks. Any other
-- error does not depend on the locks, and is the reply.

local renewed = {}
for i, key in ipairs(KEYS) do
  local owner, lease = ARGV[2 * i - 1], ARGV[2 * i]
  local mine = redis.pcall('HEXISTS', key, owner)
  if type(mine) == 'table' and not string.find(mine.err, '^WRONGTYPE') then
    return mine
  elseif mine == 1 then
    redis.call('PEXPIRE', key, lease)
    renewed[i] = RENEWED
  elseif mine == 0 and redis.call('EXISTS', key) == 0 then
    renewed[i] = GONE
  else
    renewed[i] = TAKEN
  end
end
return renewed
