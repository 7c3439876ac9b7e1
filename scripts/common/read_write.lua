-- Common part of the scripts of the read/write lock.
--
-- The lock is a hash: "mode" -> "read" or "write", owner -> its read holds, owner:write -> its write holds. Each read
-- hold also has a key of its own, which lives as long as its lease.

--- include common/take.lua
--- include common/other_keys.lua
--- include common/foreign_hash.lua
--- include common/foreign_fields.lua
--- include common/number.lua

-- Only so many read holds of an owner have leases of their own; more of them would say nothing new.
local MAX_HOLDS = 10000

-- How many owners are checked when the holds of one end.
local MAX_READERS = 1000

-- Returns how many read holds an owner has whose leases count.
local function holds_of(text)
  return math.min(tonumber(text or 0) or 0, MAX_HOLDS)
end

local function lease_key(prefix, owner, i)
  return prefix .. ':' .. owner .. READ_LEASE_KEY .. i
end

-- Sets the lease of an owner's i-th read hold; before is how many read holds it had. Redis
-- refuses no PEXPIRE when it is out of memory. Without the first of these keys a reader counts
-- as dead; the others carry no further information, and are omitted if they cannot be written here.
local function lease_read(prefix, owner, i, before, lease)
  local key = lease_key(prefix, owner, i)
  if i <= before and call_if_here('PEXPIRE', key, lease) == 1 then
    return
  elseif i == 1 then
    redis.call('SET', key, '1', 'PX', lease)
  else
    call_if_here('SET', key, '1', 'PX', lease)
  end
end

-- Fails if the mode of a lock that is held is another application's: hold would replace it.
local function check_mode(hash)
  if not is_our_mode(hash) then
    refuse_foreign('the lock has a mode that is neither "read" nor "write"')
  end
end

-- Sets the owner's hold counts and their lease; other readers may hold the lock as well. free:
-- the lock is free. before: the owner's read holds so far.
local function hold(hash, owner, writes, reads, lease, prefix, free, before)
  before = holds_of(before)
  for i = 1, math.min(reads, MAX_HOLDS) do
    lease_read(prefix, owner, i, before, lease)
  end
  local fields = {'mode', writes > 0 and 'write' or 'read'}
  local gone -- the field of a count that is 0
  for field, count in pairs({[owner] = reads, [owner .. ':write'] = writes}) do
    if count > 0 then
      fields[#fields + 1], fields[#fields + 2] = field, count
    else
      gone = field
    end
  end
  if free then
    take(hash, lease, unpack(fields))
    return
  end
  local left = redis.call('PTTL', hash)
  redis.call('PEXPIRE', hash, math.max(left, lease))
  redis.call('HSET', hash, unpack(fields))
  if gone then
    redis.call('HDEL', hash, gone)
  end
  for i = reads + 1, before do
    call_if_here('DEL', lease_key(prefix, owner, i))
  end
  if left > lease and redis.call('HLEN', hash) == 1 + math.min(writes, 1) + math.min(reads, 1) then
    redis.call('PEXPIRE', hash, lease) -- no other owner holds it for longer
  end
end

-- Ends the leases of an owner's read holds.
local function end_leases(owner, prefix, reads)
  for i = 1, holds_of(reads) do
    call_if_here('DEL', lease_key(prefix, owner, i))
  end
end

-- Looks at fields of the hash. Returns whether one is another application's; for how many ms the longest lease of a
-- reader lasts, nil if a lease may be on the other server; and the owners whose leases are over. Those are dead:
-- Redisson ignores them as well when it ends the lock.
local function look_at(hash, prefix, fields)
  local foreign, owners = false, {}
  for _, field in ipairs(fields) do
    if field == 'mode' then
      foreign = foreign or not is_our_mode(hash)
    elseif is_owner(field) and redis.call('HSTRLEN', hash, field) <= MAX_COUNT_LENGTH then
      owners[#owners + 1] = field
    else
      foreign = true
    end
  end
  local counts = owners[1] and redis.call('HMGET', hash, unpack(owners))
  local longest, dead = 0, {}
  for i, field in ipairs(owners) do
    local lasts, holds = 0, exactly(counts[i])
    local is_count = holds and holds >= 0
    for n = 1, is_count and math.min(holds, MAX_HOLDS) or 0 do
      local key = lease_key(prefix, field, n)
      local left = call_if_here('PTTL', key)
      if not left or left == -2 and not call_if_here('EXISTS', hash, key) then
        return foreign
      end
      lasts = math.max(lasts, left)
    end
    longest = math.max(longest, lasts)
    if not is_count then
      foreign = true
    elseif lasts == 0 then
      dead[#dead + 1] = field
    end
  end
  return foreign, longest, dead
end

-- Ends holds: removes the fields of their owners from the hash. Reports whether the lock is free now. The lock lasts as
-- long as the longest remaining hold. A hash with fields of another application stays, without a TTL. One command
-- removes all fields, after all reads: if Redis refuses a command, it leaves no lock without an owner, which would keep
-- every client out.
local function end_holds(hash, prefix, ended)
  local is_ended, fields = {}, {}
  for _, field in ipairs(ended) do
    is_ended[field] = true
  end
  for _, field in ipairs(redis.call('HRANDFIELD', hash, MAX_READERS + 1 + #ended)) do
    if not is_ended[field] then
      fields[#fields + 1] = field
    end
  end
  local many = #fields > MAX_READERS -- too many to look at all
  local foreign, longest, dead = look_at(hash, prefix, many and {unpack(fields, 1, MAX_SEEN)} or fields)
  local over = longest == 0 and (foreign or not many) -- else a reader lives, or may live
  if over then
    for _, field in ipairs(dead) do
      ended[#ended + 1] = field
    end
    if not many and (not foreign or is_our_mode(hash)) then
      ended[#ended + 1] = 'mode'
    end
  end
  redis.call('HDEL', hash, unpack(ended))
  if over and foreign then
    redis.pcall('PERSIST', hash) -- no error may keep the hold from ending
  elseif longest and longest > 0 and not many then -- else the lock keeps its TTL
    redis.call('PEXPIRE', hash, longest)
  end
  return over and not foreign
end

-- Ends all holds of the owner, which has so many read holds. Reports whether the lock is free now.
local function leave(hash, owner, prefix, reads)
  end_leases(owner, prefix, reads)
  return end_holds(hash, prefix, {owner, owner .. ':write'})
end

-- Returns what wait_queue needs of a read/write lock; see wait_queue.lua.
local function read_write_lock(hash, prefix)
  local function give(owner, mode, ttl, joins)
    hold(hash, owner, mode == '0' and 1 or 0, mode == '1' and 1 or 0, ttl, prefix, not joins)
  end
  return {hash = hash, channel = READ_WRITE_CHANNEL, counter = '', give = give}
end

-- Returns the entry that a MultiLock adds to the wait queue of one of its locks. It shares only a lock that it reads.
local function entry_for(kind, entry)
  return (string.gsub(entry, '^(%d+ %d+ %d+) [01] ', kind == 'read' and '%1 1 ' or '%1 0 '))
end
