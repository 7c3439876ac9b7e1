-- Deletes a semaphore or a latch.
--
-- KEYS[1]  the semaphore or the latch, a string: the permits that are free, or the missing count-downs
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  its channel. The 0 that is published there says that a latch is open; waiters for permits find out that
--          there are none
--
-- Reply: {1: deleted, 0: there was none; 0}

--- include common/number.lua
--- include common/once.lua
--- include common/counts.lua

local counter, record, command, channel = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
return once(record, command, function()
  if not number_of(counter, MAX_NUMBER, 'permits or missing count-downs') then
    return {0, 0}
  end
  redis.call(PUBLISH, channel, '0')
  return {1, 0}, function() redis.call('PEXPIRE', counter, 0) end
end)
