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
local record = redis.call('HMGET', KEYS[2], 'memory', 'age')
local memory = record[1] or ''
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  local left = redis.call('PTTL', KEYS[1])
  local other = left ~= -2 and owner_in(check_lock(KEYS[1])) -- a foreign key fails the script before it writes
  if ARGV[4] ~= '0' then
    local age, needed = tonumber(record[2] or 0), tonumber(ARGV[4])
    local present = present_memory()
    if string.sub(memory, 1, #present) ~= present then
      check_memory(KEYS[2], record[1], record[2])
      memory, age = present .. ARGV[5], 0
      redis.call('HSET', KEYS[2], 'memory', memory, 'age', 0)
    elseif age < needed and memory == ARGV[6] and age < tonumber(ARGV[7]) then
      age = tonumber(ARGV[7])
      redis.call('HSET', KEYS[2], 'age', age)
    end
    if age < needed then
      return {TOO_NEW, needed - age, '', memory}
    end
  end
  if other then
    return {REFUSED, left, other, memory}
  elseif ARGV[2] ~= '1' then
    return {ABSENT, 0, '', memory}
  end
  take(KEYS[1], ARGV[3], ARGV[1], '1')
  return {GRANTED, 0, '', memory}
end
-- Before the count: a server out of memory refuses no write after the first.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {GRANTED, 0, '', memory}
