-- Says what memory a server of a RedLock has, and for how long that is known to exist. A
-- server that was started, flushed, or has taken over from another, has a new one, which
-- may have forgotten locks. Its age is what processes have seen by their own clocks: the
-- server's clock may be set at any time, and is, after the machine was started.
--
-- KEYS[1]  the memory's record, a hash: "memory" -> "<run id>:<name>", "age" -> ms
-- ARGV[1]  a name for the memory if it is new
--
-- Reply: {its known age in ms, the memory}
local record = redis.call('HMGET', KEYS[1], 'memory', 'age')
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if record[1] and string.sub(record[1], 1, #run) == run then
  return {tonumber(record[2]), record[1]}
end
local memory = run .. ':' .. ARGV[1]
redis.call('HSET', KEYS[1], 'memory', memory, 'age', 0)
return {0, memory}
