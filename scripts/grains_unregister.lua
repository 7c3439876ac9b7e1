-- Removes entries of grains that are still the same.
--
-- KEYS[1]  the entries of the cluster, a hash: grain or member -> entry or mark
-- KEYS[2]  optionally the lease of a member: nothing is removed while it lasts
-- ARGV[2i-1], ARGV[2i]
--          the i-th grain, and its entry
--
-- Reply: 1, or 0 if the lease lasts

local entries, lease = unpack(KEYS)
if lease and redis.call('EXISTS', lease) == 1 then
  return 0
end
for i = 1, #ARGV, 2 do
  if redis.call('HGET', entries, ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', entries, ARGV[i])
  end
end
return 1
