-- Returns the name of the memory of a RedLock's server, and how old it is at least. A server
-- that was started, flushed, or promoted has a new memory, and may have forgotten locks. Processes
-- measure the age by their own clocks: the server's clock may be set at any time, and often is
-- just after its machine starts.
--
-- KEYS[1]  the memory's record, a hash: "memory" -> "<run id>:<replication id>:<name>", "age" -> ms
-- ARGV[1]  a name for the memory if it is new
--
-- Reply: {known age in ms, name of the memory}

--- include common/present_memory.lua
--- include common/check_memory.lua

local memory_key, name = KEYS[1], ARGV[1]
local record = redis.call('HMGET', memory_key, 'memory', 'age')
local present = present_memory()
if record[1] and string.sub(record[1], 1, #present) == present then
  return {tonumber(record[2]), record[1]}
end
check_memory(memory_key, record[1], record[2])
local memory = present .. name
redis.call('HSET', memory_key, 'memory', memory, 'age', 0)
return {0, memory}
