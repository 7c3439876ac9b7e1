-- The beginning of acquire.lua: takes a lock that is free and has no wait queue. Most acquires end here,
-- so this comes before the code that only the others need. The header of acquire.lua documents the arguments.
local hash = KEYS[1]
local owner, count, lease, queue_key, settings, counter, entry, notified = unpack(ARGV)
if count == '1' and redis.pcall('EXISTS', hash, queue_key) == 0 then
  take(hash, lease, owner, '1')
  return nil
end
