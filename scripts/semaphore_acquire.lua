-- Takes permits for the waiters of a process, in their order, as long as the free permits suffice. Leaves
-- permits to the processes that have waited for longer.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the key of the wait queue
-- ARGV[3]  the settings of the wait queue
-- ARGV[4]  the client that waits
-- ARGV[5]  the entry that it has in the wait queue if not all waiters are served, or "" for none
-- ARGV[6…] how many permits each waiter wants. Without any, the client leaves the wait queue
--
-- Reply: {how many waiters got their permits, the permits that are free then, and not left to others}; {NO_KEY, 0} if
-- there is no semaphore

--- include common/once.lua
--- include common/counts.lua
--- include common/permits_queue.lua

local semaphore, record = KEYS[1], KEYS[2]
local command, queue_key, settings, client, entry = unpack(ARGV, 1, 5)
return once(record, command, function()
  local queue = open_queue(semaphore, queue_key, settings, client)
  local free = count_of(semaphore)
  if not free then
    if queue then
      leave(queue)
    end
    return {NO_KEY, 0}
  end
  local left = free - (queue and free > 0 and reserved_in(queue, free) or 0)
  local served, taken, first = 0, 0, 6
  for i = first, #ARGV do
    local wanted = tonumber(ARGV[i])
    if taken + wanted > left then
      break
    end
    served, taken = served + 1, taken + wanted
  end
  if queue then
    local gone = queue.dropped
    if entry == '' or served > 0 or #ARGV < first then
      leave(queue)
    end
    -- If it has taken all that its entry wanted, the other permits suffice for the same processes as before.
    queue.dropped = gone or queue.dropped and taken < queue.wanted
    if entry ~= '' and served <= #ARGV - first then
      enter(queue, entry) -- at the end, if some were served: the other processes have their turn first
    end
    if queue.dropped then
      wake_up(queue, 0, free - taken)
    end
  end
  return {served, left - taken}, taken > 0 and function() redis.call('DECRBY', semaphore, taken) end
end)
