-- Adds permits: released or new ones. A negative number takes permits away, even more than are free.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  how many permits
-- ARGV[3]  "1": only if the semaphore exists; otherwise it is created
-- ARGV[4]  the semaphore's channel
-- ARGV[5]  the key of the wait queue
-- ARGV[6]  the settings of the wait queue
-- ARGV[7]  the client
-- ARGV[8]  "1": the client leaves the wait queue
--
-- Reply: {1: added, 0: the semaphore does not exist; the permits that are free then}

--- include common/once.lua
--- include common/permits_queue.lua
--- include common/add.lua

local semaphore, record = KEYS[1], KEYS[2]
local command, permits, if_exists, channel, queue_key, settings, client, leaves = unpack(ARGV)
return once(record, command, function()
  local queue = open_queue(semaphore, queue_key, settings, client)
  return add(queue, semaphore, permits, if_exists, channel, leaves == '1')
end)
