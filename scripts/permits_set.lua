-- Sets how many permits there are.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel, on which the number is published if it is positive
-- ARGV[3]  "try": that many if there are no permits yet; "set": that many, free and taken together;
--          "add": that many more, or less
-- ARGV[4]  the number
--
-- Reply: 1, or 0 if there are permits already
return once(KEYS[3], ARGV[1], function()
  local free, how, number = count_of(KEYS[1]), ARGV[3], tonumber(ARGV[4])
  local more = number
  if free and how == 'try' then
    return {0}
  elseif free and how == 'set' then
    more = number - free - redis.call('ZCOUNT', KEYS[2], 0, '+inf')
  end
  if free and more == 0 then
    return {1}
  end
  if (free or 0) + more > 2147483647 then -- Redisson reads no greater one
    error('ERR there would be more than 2147483647 permits', 0)
  elseif number > 0 then
    redis.call('PUBLISH', ARGV[2], number)
  end
  return {1}, function() redis.call('INCRBY', KEYS[1], more) end
end)
