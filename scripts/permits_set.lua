-- Sets how many permits there are.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel, on which the number is published if it is positive
-- ARGV[3]  "try": that many if there are no permits yet; "set": that many, free and taken together,
--          also in place of a number that is refused;
--          "add": that many more, or less
-- ARGV[4]  the number
--
-- Reply: 1, or 0 if there are permits already
return once(KEYS[3], ARGV[1], function()
  local how, number = ARGV[3], tonumber(ARGV[4])
  local value = how == 'set' and redis.call('GET', KEYS[1])
  if value and is_number(value) and not pcall(count_of, KEYS[1]) then
    local left = number - redis.call('ZCOUNT', KEYS[2], 0, '+inf')
    if number > 0 then
      redis.call('PUBLISH', ARGV[2], number)
    end
    return {1}, function() redis.call('SET', KEYS[1], left, 'KEEPTTL') end
  end
  local free, more = count_of(KEYS[1]), number
  if free and how == 'try' then
    return {0}
  elseif free and how == 'set' then
    more = number - free - redis.call('ZCOUNT', KEYS[2], 0, '+inf')
  end
  if free and more == 0 then
    return {1}
  end
  check_permits((free or 0) + more)
  if number > 0 then
    redis.call('PUBLISH', ARGV[2], number)
  end
  return {1}, function() redis.call('INCRBY', KEYS[1], more) end
end)
