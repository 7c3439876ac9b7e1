-- Adds permits: released or new ones. A negative number takes permits away, even more than are free.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  how many permits
-- ARGV[3]  "1": only if the semaphore exists; otherwise it is created
-- ARGV[4]  the semaphore's channel; the free permits are published, unless they are negative
--
-- Reply: {1: added, 0: the semaphore does not exist; the permits that are free then}
local semaphore, record = KEYS[1], KEYS[2]
local command, permits, if_exists, channel = unpack(ARGV)
return once(record, command, function()
  return add(semaphore, permits, if_exists, channel)
end)
