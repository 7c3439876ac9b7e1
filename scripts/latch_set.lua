-- Closes a latch: sets its count, unless it has one.
--
-- KEYS[1]  the latch, a string: how many count-downs are missing
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the count
-- ARGV[3]  the latch's channel, on which the closing is published
--
-- Reply: {1: set, 0: it had a count; the count then}
return once(KEYS[2], ARGV[1], function()
  local count = number_of(KEYS[1], MOST, 'missing count-downs')
  if count then
    return {0, count}
  end
  redis.call('PUBLISH', ARGV[3], '1')
  return {1, tonumber(ARGV[2])}, function() redis.call('SET', KEYS[1], ARGV[2]) end
end)
