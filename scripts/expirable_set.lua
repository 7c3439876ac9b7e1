-- Sets how many permits there are.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- KEYS[4]  a waiting "restore", with the time when it may be carried out; see restore.lua. Its TTL ends more than an
--          hour later: requests that do not wait may be far apart. It is deleted when the number is set, so that each
--          loss has its own wait
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel, on which the number is published if it is positive
-- ARGV[3]  "try": sets the number of free and taken permits together if no number is set
--          "set": sets it in any case, also in place of a number that is refused
--          "add": adds the number, which may be negative
--          "delete": deletes the semaphore, unless permits are taken
--          "restore": as "try", but only after the leases of permits that were taken before Redis lost its data are
--          over. The wait begins again if the server has lost more since then: its memory, or permits that were taken;
--          and if it has become longer than these leases, since the clock was set back
-- ARGV[4]  the number
-- ARGV[5]  for "restore", how long these leases are, ms
-- ARGV[6…] for "restore", the rest of the lease in ms and the id of each permit that the client still
--          trusts: it stays taken
--
-- Reply: 1; 0 if there are permits already, or if there is nothing to delete; or minus the ms that a restore must still
-- wait

--- include common/number.lua
--- include common/once.lua
--- include common/counts.lua
--- include common/clock.lua
--- include common/expirable.lua
--- include common/restore.lua
--- include common/present_memory.lua

local free_key, taken_key, record, restore_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local command, channel, how, number, lost_leases = unpack(ARGV, 1, 5)
number, lost_leases = tonumber(number), tonumber(lost_leases)

-- Each of the next functions returns a reply and a change, as "once" wants them. end_restore is the change that deletes
-- the waiting restore, if there is one.

local function delete(now, end_restore)
  if not count_of(free_key) or redis.call('ZCOUNT', taken_key, now, '+inf') > 0 then
    return {0}
  end
  local rank = 0
  repeat -- checks all that are deleted
    local ids = redis.call('ZRANGE', taken_key, rank, rank + MAX_EXPIRED - 1)
    check_ids(ids)
    rank = rank + #ids
  until #ids < MAX_EXPIRED
  return {1}, function()
    end_restore()
    redis.call('PEXPIRE', taken_key, 0)
    redis.call('PEXPIRE', free_key, 0)
  end
end

-- Replaces a number that is refused, and so cannot be added to.
local function replace(taken, end_restore)
  if number > 0 then
    redis.call(PUBLISH, channel, number)
  end
  return {1}, function()
    end_restore()
    redis.call('SET', free_key, number - taken, 'KEEPTTL')
  end
end

-- Lets a restore wait; returns nil if it has waited for long enough. The others are what restore_of has returned.
local function wait_to_restore(now, taken, memory, at, seen)
  local present = present_memory()
  local begins = memory ~= present or seen ~= taken or at - now > lost_leases
  local rest = begins and lost_leases or at - now
  if rest > 0 then
    return {-rest}, begins and function()
      put_restore(restore_key, present, now + rest, taken, 'PX', 2 * lost_leases + 3600000)
    end
  end
end

-- Returns how many of the permits that the client still trusts have been lost.
local function lost_permits()
  local lost = 0
  for i = 7, #ARGV, 2 do
    if not redis.call('ZSCORE', taken_key, ARGV[i]) then
      lost = lost + 1
    end
  end
  return lost
end

return once(record, command, function()
  check_taken(taken_key)
  local now, taken = epoch_ms(), redis.call('ZCOUNT', taken_key, 0, '+inf')
  local memory, at, seen = restore_of(restore_key, now)
  local function end_restore()
    if memory then
      redis.call('PEXPIRE', restore_key, 0) -- deletes it
    end
  end

  if how == 'delete' then
    return delete(now, end_restore)
  end
  local value = how == 'set' and text_of(free_key)
  if value and is_number(value) and not pcall(count_of, free_key) then
    return replace(taken, end_restore)
  end
  local free, more = count_of(free_key), number
  if free and (how == 'try' or how == 'restore') then
    return {0}, end_restore
  elseif how ~= 'add' then -- also if only the number is lost
    more = number - (free or 0) - taken
  end
  if how == 'restore' then
    local reply, change = wait_to_restore(now, taken, memory, at, seen)
    if reply then
      return reply, change
    end
    more = more - lost_permits()
  end
  if free and more == 0 then
    return {1}, end_restore
  end
  check_permits((free or 0) + more)
  if memory then -- what is to be deleted stays for as long as it would
    redis.call('PEXPIRE', restore_key, math.max(redis.call('PTTL', restore_key), 1))
    redis.call('ZADD', taken_key, 'XX', 0, NO_PERMIT)
  end
  if number > 0 then
    redis.call(PUBLISH, channel, number)
  end
  return {1}, function()
    redis.call('INCRBY', free_key, more)
    end_restore()
    for i = 6, #ARGV, 2 do
      redis.call('ZADD', taken_key, 'NX', now + ARGV[i], ARGV[i + 1])
    end
  end
end)
