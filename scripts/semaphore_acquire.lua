-- Takes permits for the waiters of a process, in their order, for as many of them as the free permits
-- suffice for.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2…] how many permits each waiter wants
--
-- Reply: {how many waiters got their permits, the permits that are free then}; {NO_KEY, 0} if there is
-- no semaphore
local semaphore, record, command = KEYS[1], KEYS[2], ARGV[1]
return once(record, command, function()
  local free = count_of(semaphore)
  if not free then
    return {NO_KEY, 0}
  end
  local served, taken = 0, 0
  for i = 2, #ARGV do
    local wanted = tonumber(ARGV[i])
    if taken + wanted > free then
      break
    end
    served, taken = served + 1, taken + wanted
  end
  return {served, free - taken}, taken > 0 and function() redis.call('DECRBY', semaphore, taken) end
end)
