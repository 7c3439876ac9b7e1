-- Takes permits for the waiters of a process, in their order. Each waiter gets all permits that it wants; if they are
-- not free, it gets none, and neither do the waiters behind it. Frees permits that have expired.
--
-- While the first waiter of a process wants several permits and not all are free, the free permits are reserved for it:
-- other processes take none. Otherwise they would take each permit as it is released. Permits are reserved for one
-- process at a time.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel, on which the number of free permits is published if permits had expired, or are no longer
--          reserved for this client
-- ARGV[3]  the key that says for which client permits are reserved, by its KEYS[3]; the key may not exist
-- ARGV[4]  for how long permits are reserved for this client if its first waiter wants several, in ms; 0: it does not
--          wait
-- ARGV[5…] for each waiter: the lease in ms, how many permits it wants, and their ids. Without any, permits are no
--          longer reserved for this client
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
local FIRST = 5 -- the index of the first waiter

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

-- Returns how many waiters a number of permits serves, how many of these are left, and the index of the next waiter.
local function serve(permits)
  local served, next_waiter = 0, FIRST
  local wanted = tonumber(ARGV[next_waiter + 1])
  while wanted and wanted <= permits do
    permits, served, next_waiter = permits - wanted, served + 1, next_waiter + 2 + wanted
    wanted = tonumber(ARGV[next_waiter + 1])
  end
  return served, permits, next_waiter
end

-- Takes the permits of the waiters that are served.
local function take_permits(now, next_waiter)
  local waiter = FIRST
  while waiter < next_waiter do
    local ends, last = now + ARGV[waiter], waiter + 1 + ARGV[waiter + 1]
    for i = waiter + 2, last do
      redis.call('ZADD', taken_key, ends, ARGV[i])
    end
    waiter = last + 1
  end
end

-- Returns when the first permit expires that is not among the expired ones, nil if there is none. Members with a
-- negative time are ignored, as everywhere: they are neither taken nor expired.
local function first_end(expired)
  local first = check_taken(taken_key)
  if expired > 0 or first and tonumber(first) < 0 then
    first = redis.call('ZRANGE', taken_key, 0, '+inf', 'BYSCORE', 'LIMIT', expired, 1, 'WITHSCORES')[2]
  end
  return first and tonumber(first)
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

  local expired = math.min(redis.call('ZCOUNT', taken_key, 0, now), MAX_EXPIRED)
  local may_take = reserved_by_us or not reserver
  local served, left, next_waiter = 0, free + expired, FIRST
  if may_take then
    served, left, next_waiter = serve(left)
  end
  local first = first_end(expired)
  local ids
  if expired > 0 then
    ids = redis.call('ZRANGE', taken_key, 0, now, 'BYSCORE', 'LIMIT', 0, expired)
    check_ids(ids) -- these are removed
  end
  local reply = {served, first and first < NEVER and math.max(math.ceil(first - now), 1) or -1}

  local wanted = tonumber(ARGV[next_waiter + 1]) or 0
  local reserves = may_take and served == 0 and wanted > 1 and tonumber(reserve) > 0
    and wanted <= free + redis.call('ZCOUNT', taken_key, 0, '+inf') -- there will never be more
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
    take_permits(now, next_waiter)
    if ttl > 0 then
      redis.call('PEXPIRE', taken_key, ttl) -- the permits end with the number
    end
  end
end)
