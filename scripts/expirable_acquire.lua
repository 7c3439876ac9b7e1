-- Takes permits for the waiters of a process, in their order. Each waiter gets all permits that it wants; if they are not
-- free, it gets none, and neither do the waiters behind it. Frees permits that have expired.
--
-- While the first waiter of a process wants several permits and not all are free, the free permits are reserved for it:
-- other processes take none. Otherwise they would take each permit as it is released. Permits are reserved for one process
-- at a time.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel, on which the number of free permits is published if permits had expired, or are no longer
--          reserved for this client
-- ARGV[3]  the key that says for which client permits are reserved, by its KEYS[3]; the key may not exist
-- ARGV[4]  for how long permits are reserved for this client if its first waiter wants several, in ms; 0: it does not wait
-- ARGV[5…] for each waiter: the lease in ms, how many permits it wants, and their ids. Without any, permits are no longer
--          reserved for this client
--
-- Reply: {how many waiters got their permits; in how many ms the next of the permits taken before
-- expires, -1 if none does}; {NO_KEY, -1} if no number of permits is set

--- include common/once.lua
--- include common/counts.lua
--- include common/clock.lua
--- include common/expirable.lua
--- include common/other_keys.lua

local free_key, taken_key, record = KEYS[1], KEYS[2], KEYS[3]
local command, channel, reserved_key, reserve = unpack(ARGV, 1, 4)

-- Returns the client for which permits are reserved, or nil.
local function reserver_of()
  local reserver, own = call_if_here('GETRANGE', reserved_key, 0, 999), string.match(reserved_key, '^.*:')
  if not reserver or reserver == '' and call_if_here('EXISTS', reserved_key) ~= 1 then
    return nil
  end
  if string.sub(reserver, 1, #own) ~= own or call_if_here('PTTL', reserved_key) < 0 then
    error('WRONGTYPE ' .. string.gsub(reserved_key, '%c', '?') ..
      ' has something other than the client for which permits are reserved; delete it', 0)
  end
  return reserver
end

return once(record, command, function()
  redis.call('ZADD', taken_key, 'XX', 0, NO_PERMIT) -- first: a server out of memory refuses it
  local now, free, reserver = epoch_ms(), count_of(free_key), reserver_of()
  local reserved_by_us = reserver == record
  local function drop_reservation()
    if reserved_by_us then
      redis.call('PEXPIRE', reserved_key, 0) -- deletes it
    end
  end
  if not free then
    return {NO_KEY, -1}, drop_reservation
  end
  local expired, ids = math.min(redis.call('ZCOUNT', taken_key, 0, now), MAX_EXPIRED), nil
  local left, served, after, wanted = free + expired, 0, 5, tonumber(ARGV[6])
  while wanted and wanted <= left and (reserved_by_us or not reserver) do
    left, served, after = left - wanted, served + 1, after + 2 + wanted
    wanted = tonumber(ARGV[after + 1])
  end
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
  local reserves = served == 0 and (wanted or 0) > 1 and tonumber(reserve) > 0 and (reserved_by_us or not reserver) and
    wanted <= free + redis.call('ZCOUNT', taken_key, 0, '+inf') -- there will never be more
  if served + expired == 0 and not (reserved_by_us or reserves) then
    return reply
  end
  redis.call('ZREM', taken_key, NO_PERMIT)
  local ttl = redis.call('PTTL', free_key)
  check_permits(left)
  if left > 0 and (expired > 0 or reserved_by_us and not reserves) then
    redis.call(PUBLISH, channel, left)
  end
  return reply, function()
    if reserves then
      redis.call('SET', reserved_key, record, 'PX', reserve)
    else
      drop_reservation()
    end
    redis.call('INCRBY', free_key, left - free)
    if ids then
      redis.call('ZREM', taken_key, unpack(ids))
    end
    local at = 5
    while at < after do
      local last = at + 1 + ARGV[at + 1]
      for i = at + 2, last do
        redis.call('ZADD', taken_key, now + ARGV[at], ARGV[i])
      end
      at = last + 1
    end
    if ttl > 0 then
      redis.call('PEXPIRE', taken_key, ttl) -- the permits end with the number
    end
  end
end)
