-- Common part of the scripts that add permits.

--- include common/permits_queue.lua
--- include common/counts.lua
--- include common/wait_queue_entries.lua

-- Returns the reply and the change of a command that adds permits; see once. They are published for clients that are
-- not in the wait queue, which is nil if it is not here. leaves: the client leaves it.
local function add(queue, key, more, if_exists, channel, leaves)
  local before = count_of(key)
  local free = (before or 0) + tonumber(more)
  check_permits(free)
  if queue and leaves then
    leave(queue)
  end
  if not before and if_exists == '1' then
    return {0, 0}
  end
  -- Redisson fails if the number is negative.
  if free >= 0 and not (queue and queue.size > 0 and queue.sees_subscribers and foreign_subscribers(queue.key, channel) == 0) then
    redis.call(PUBLISH, channel, free)
  end
  if queue then
    wake_up(queue, before or 0, free)
  end
  return {1, free}, function() redis.call('INCRBY', key, more) end
end
