-- Common part of the scripts that add permits.

--- include common/permits_queue.lua
--- include common/counts.lua
--- include common/wait_queue_entries.lua

-- Returns the reply and the change of a command that adds permits to a semaphore; see once. The number of free permits
-- is published for clients that are not in the wait queue. queue is nil if it is not here. leaves: the client leaves
-- it.
local function add(queue, semaphore, permits, if_exists, channel, leaves)
  local before = count_of(semaphore)
  local free = (before or 0) + tonumber(permits)
  check_permits(free)
  if queue and leaves then
    leave(queue)
  end
  if not before and if_exists == '1' then
    return {0, 0}
  end
  local only_queued = queue and queue.size > 0 and queue.sees_subscribers
    and foreign_subscribers(queue.key, channel) == 0
  if free >= 0 and not only_queued then -- Redisson fails if the number is negative
    redis.call(PUBLISH, channel, free)
  end
  if queue then
    wake_up(queue, before or 0, free)
  end
  return {1, free}, function() redis.call('INCRBY', semaphore, permits) end
end
