-- The beginning of release.lua: frees a lock that nobody waits for in the line. Most releases end
-- here, so it comes before what only the others need.
-- The hash has only one field, so deleting the field deletes the key.
local freed = ARGV[2] == '0' and redis.call('HDEL', KEYS[1], ARGV[1]) == 1
local fields = ARGV[2] == '0' and redis.pcall('HGETALL', ARGV[5]) or {}
if freed and not fields[1] and not fields.err then
  redis.call('PUBLISH', ARGV[4], '0')
  return 0
end
