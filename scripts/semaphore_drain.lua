-- Takes all permits that are free. A negative number of them becomes zero.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
--
-- Reply: how many were free

--- include common/once.lua
--- include common/counts.lua

local semaphore, record, command = KEYS[1], KEYS[2], ARGV[1]
return once(record, command, function()
  local free = count_of(semaphore) or 0
  return {free}, free ~= 0 and function() redis.call('DECRBY', semaphore, free) end
end)
