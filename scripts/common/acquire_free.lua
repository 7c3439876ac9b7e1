-- The beginning of acquire.lua: takes a lock that is free and has no wait queue. Most acquires end here,
-- so this comes before the code that only the others need.
if ARGV[2] == '1' and redis.pcall('EXISTS', KEYS[1], ARGV[4]) == 0 then
  take(KEYS[1], ARGV[3], ARGV[1], '1')
  return nil
end
