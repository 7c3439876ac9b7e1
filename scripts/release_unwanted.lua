-- The beginning of release.lua: frees a lock that nobody waits for in the line. Most releases end
-- here, so it comes before what only the others need.
-- The hash has only one field, so deleting the field deletes the key.
local freed = ARGV[2] == '0' and redis.call('HDEL', KEYS[1], ARGV[1]) == 1
if freed and redis.pcall('EXISTS', ARGV[5]) == 0 then
  redis.call('PUBLISH', ARGV[4], '0')
  return 0
end
