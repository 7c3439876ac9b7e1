-- Takes permits for the waiters of a process, one for each, in their order, as long as there are any.
-- Frees permits that have expired.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel, on which the number of free permits is published if permits had expired
-- ARGV[3…] the lease in ms and the id of each permit
--
-- Reply: {how many waiters got a permit; in how many ms the next of the permits taken before
-- expires, -1 if none does}; {NO_KEY, -1} if no number of permits is set
local free_key, taken_key, record = KEYS[1], KEYS[2], KEYS[3]
local command, channel = ARGV[1], ARGV[2]
return once(record, command, function()
  redis.call('ZADD', taken_key, 'XX', 0, NO_PERMIT) -- first: a server out of memory refuses it
  local now, free = epoch_ms(), count_of(free_key)
  if not free then
    return {NO_KEY, -1}
  end
  local expired, ids = math.min(redis.call('ZCOUNT', taken_key, 0, now), MOST_EXPIRED), nil
  local wanted = (#ARGV - 2) / 2
  local served = math.max(math.min(free + expired, wanted), 0)
  local first = check_taken(taken_key)
  -- Members with a negative time are ignored, as everywhere: they are neither taken nor expired.
  if expired > 0 or first and tonumber(first) < 0 then
    first = redis.call('ZRANGE', taken_key, 0, '+inf', 'BYSCORE', 'LIMIT', expired, 1, 'WITHSCORES')[2]
  end
  if expired > 0 then
    ids = redis.call('ZRANGE', taken_key, 0, now, 'BYSCORE', 'LIMIT', 0, expired)
    check_ids(ids) -- these are removed
  end
  local reply = {served, first and tonumber(first) < NEVER and math.max(math.ceil(first - now), 1) or -1}
  if served + expired == 0 then
    return reply
  end
  redis.call('ZREM', taken_key, NO_PERMIT)
  local ttl = redis.call('PTTL', free_key)
  local left = free + expired - served
  check_permits(left)
  if expired > 0 and left > 0 then
    redis.call('PUBLISH', channel, left)
  end
  return reply, function()
    redis.call('INCRBY', free_key, expired - served)
    if ids then
      redis.call('ZREM', taken_key, unpack(ids))
    end
    for i = 3, 2 * served + 2, 2 do
      redis.call('ZADD', taken_key, now + ARGV[i], ARGV[i + 1])
    end
    if ttl > 0 then
      redis.call('PEXPIRE', taken_key, ttl) -- the permits end with the number
    end
  end
end)
