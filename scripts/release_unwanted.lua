-- The beginning of release.lua: frees a lock that nobody waits for in the line. Most releases end
-- here, so it comes before what only the others need.
-- The hash has only one field, so deleting the field deletes the key.
local freed = ARGV[2] == '0' and redis.call('HDEL', KEYS[1], ARGV[1]) == 1
local entries = ARGV[2] == '0' and redis.pcall('HLEN', ARGV[5]) or 0
if freed and entries == 0 then
  redis.call('PUBLISH', ARGV[4], '0')
  return 0
end
-- What is no line, or has more fields than may be read, keeps no lock from being released.
local readable = type(entries) == 'number' and entries > 0 and entries <= MOST_IN_LINE
local fields = readable and redis.pcall('HGETALL', ARGV[5]) or {}
