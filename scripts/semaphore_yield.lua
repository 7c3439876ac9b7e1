-- Gives permits back at the hand-off limit, if other clients wait for permits. The client leaves the wait queue then.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  how many permits
-- ARGV[3]  the semaphore's channel
-- ARGV[4]  the key of the wait queue
-- ARGV[5]  the settings of the wait queue
-- ARGV[6]  the client
-- ARGV[7]  "1" gives them back even if no other client is seen to wait: some wait without subscribing
--
-- Reply: {1: given back, 0: no other client waits, NO_KEY: the semaphore does not exist; the permits
-- that are free then}

--- include common/once.lua
--- include common/counts.lua
--- include common/wait_queue_entries.lua
--- include common/permits_queue.lua
--- include common/add.lua

local semaphore, record = KEYS[1], KEYS[2]
local command, permits, channel, queue_key, settings, client, forced = unpack(ARGV)

return once(record, command, function()
  local free = count_of(semaphore)
  if not free then
    return {NO_KEY, 0}
  end
  local queue = open_queue(semaphore, queue_key, settings, client)
  local others = queue and queue.size > queue.own
  if free >= 0 and forced ~= '1' and not others and foreign_subscribers(queue_key, channel) == 0 then
    return {NOT_RELEASED, free}
  end
  local reply, change = add(queue, semaphore, permits, '1', channel, true)
  return {RELEASED, reply[2]}, change
end)
