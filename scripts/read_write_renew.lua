-- Renews the leases of many read/write locks at once. A lock that others read as well keeps a
-- longer lease.
--
-- KEYS[i]      the lock's hash
-- ARGV[3i-2]   its owner
-- ARGV[3i-1]   its lease, ms
-- ARGV[3i]     the prefix of the keys of its read leases
--
-- Reply, one number per lock: RENEWED, GONE if there is no key, TAKEN if it belongs to another
-- owner. A key of another type counts as TAKEN; it must not fail the other locks. Any other
-- error does not depend on the locks, and is the reply.

--- include common/read_write.lua

local renewed = {}
for i, key in ipairs(KEYS) do
  local owner, lease, prefix = ARGV[3 * i - 2], tonumber(ARGV[3 * i - 1]), ARGV[3 * i]
  local mine = redis.pcall('HMGET', key, owner, owner .. ':write')
  if mine.err and not string.find(mine.err, '^WRONGTYPE') then
    return mine
  elseif not mine.err and (mine[1] or mine[2]) then
    for n = 1, holds_of(mine[1]) do
      lease_read(prefix, owner, n, n, lease)
    end
    local left = redis.call('PTTL', key)
    local own_fields = 1 + (mine[1] and 1 or 0) + (mine[2] and 1 or 0) -- with the mode
    local others_last_longer = left > lease and redis.call('HLEN', key) ~= own_fields
    redis.call('PEXPIRE', key, others_last_longer and left or lease)
    renewed[i] = RENEWED
  else
    renewed[i] = redis.call('EXISTS', key) == 1 and TAKEN or GONE
  end
end
return renewed
