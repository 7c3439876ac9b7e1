-- Takes a lock on one of several independent servers, or sets how many times its owner
-- holds it. A server whose memory is new may have forgotten locks, and stays out until all
-- of them would have run out; see memory.lua.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- KEYS[2]  the memory's record
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
-- ARGV[4]  how old the memory must be, ms; 0: it does not matter
-- ARGV[5]  a name for the memory if it is new
-- ARGV[6]  the memory that the caller knows, and
-- ARGV[7]  for how many ms, by the caller's clock
--
-- Reply: {1, 0, "", memory}       the owner holds the lock that many times, for the lease from now on
--        {0, ttl, other, memory}  somebody else holds it, for ttl more ms (-1: without an end)
--        {-1, 0, "", memory}      nobody holds it, so there is nothing to re-enter
--        {-3, left, "", memory}   the server stays out for that many more ms
local record = redis.call('HMGET', KEYS[2], 'memory', 'age')
local memory = record[1] or ''
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  if ARGV[4] ~= '0' then
    local age, needed = tonumber(record[2] or 0), tonumber(ARGV[4])
    local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
    if string.sub(memory, 1, #run) ~= run then
      memory, age = run .. ':' .. ARGV[5], 0
      redis.call('HSET', KEYS[2], 'memory', memory, 'age', 0)
    elseif age < needed and memory == ARGV[6] and age < tonumber(ARGV[7]) then
      age = tonumber(ARGV[7])
      redis.call('HSET', KEYS[2], 'age', age)
    end
    if age < needed then
      return {-3, needed - age, '', memory}
    end
  end
  local left = redis.call('PTTL', KEYS[1])
  if left ~= -2 then
    return {0, left, redis.call('HRANDFIELD', KEYS[1]), memory}
  elseif ARGV[2] ~= '1' then
    return {-1, 0, '', memory}
  end
  take(KEYS[1], ARGV[3], ARGV[1], '1')
  return {1, 0, '', memory}
end
-- Before the count: a server out of memory refuses no write after the first.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return {1, 0, '', memory}
