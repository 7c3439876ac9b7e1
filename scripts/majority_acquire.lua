-- Takes a lock on one server of a RedLock, or sets its hold count. A server whose memory is new
-- may have forgotten locks, and refuses until all of them would have expired; see memory.lua.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- KEYS[2]  the memory's record
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
-- ARGV[4]  the quarantine: how old the memory must be, ms; 0: any age
-- ARGV[5]  a name for the memory if it is new
-- ARGV[6]  the name of the memory that the caller has watched
-- ARGV[7]  for how many ms, by the caller's clock
--
-- Reply: {GRANTED, 0, "", memory}       the owner holds the lock with that count; the lease starts now
--        {REFUSED, ttl, other, memory}  another owner holds it, for ttl more ms (-1: no TTL)
--        {ABSENT, 0, "", memory}        the lock is free, so there is nothing to re-enter
--        {TOO_NEW, left, "", memory}    the server does not vote for left more ms

--- include common/take.lua
--- include common/foreign_hash.lua
--- include common/present_memory.lua
--- include common/check_memory.lua

local hash, memory_key = KEYS[1], KEYS[2]
local owner, count, lease, quarantine, name, watched, watched_for = unpack(ARGV)
local record = redis.call('HMGET', memory_key, 'memory', 'age')
local memory = record[1] or ''
if redis.call('HEXISTS', hash, owner) == 0 then
  local left = redis.call('PTTL', hash)
  local other = left ~= -2 and owner_in(check_lock(hash)) -- a foreign key fails the script before it writes
  if quarantine ~= '0' then
    local age, needed = tonumber(record[2] or 0), tonumber(quarantine)
    local present = present_memory()
    if string.sub(memory, 1, #present) ~= present then -- it is new, so the record is begun anew
      check_memory(memory_key, record[1], record[2])
      memory, age = present .. name, 0
      redis.call('HSET', memory_key, 'memory', memory, 'age', 0)
    elseif age < needed and memory == watched and age < tonumber(watched_for) then -- the caller knows more
      age = tonumber(watched_for)
      redis.call('HSET', memory_key, 'age', age)
    end
    if age < needed then
      return {TOO_NEW, needed - age, '', memory}
    end
  end
  if other then
    return {REFUSED, left, other, memory}
  elseif count ~= '1' then
    return {ABSENT, 0, '', memory}
  end
  take(hash, lease, owner, '1')
  return {GRANTED, 0, '', memory}
end
-- Before the count: a server out of memory refuses no write after the first.
redis.call('PEXPIRE', hash, lease)
redis.call('HSET', hash, owner, count)
return {GRANTED, 0, '', memory}
