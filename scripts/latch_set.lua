-- Closes a latch: sets its count, unless it has one.
--
-- KEYS[1]  the latch, a string: how many count-downs are missing
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the count
-- ARGV[3]  the latch's channel, on which the closing is published
--
-- Reply: {1: set, 0: it had a count; the count then}

--- include common/number.lua
--- include common/once.lua
--- include common/counts.lua

local latch, record = KEYS[1], KEYS[2]
local command, count, channel = ARGV[1], ARGV[2], ARGV[3]
return once(record, command, function()
  local before = number_of(latch, MAX_NUMBER, 'missing count-downs')
  if before then
    return {0, before}
  end
  redis.call(PUBLISH, channel, '1')
  return {1, tonumber(count)}, function() redis.call('SET', latch, count) end
end)
