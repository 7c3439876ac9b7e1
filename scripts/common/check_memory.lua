-- Common parts of the scripts that write the memory of a RedLock's server; prepended to each of them.

-- Fails if a hash has other fields than the name and the age of a memory, which were read from it: another
-- application then uses the key.
local function check_memory(key, name, age)
  local fields = redis.call('HLEN', key)
  if fields > 0 and not (fields == 2 and string.find(name or '', '^%w+:') and string.find(age or '', '^%d+$')) then
    error("WRONGTYPE the hash of the server's memory has something other than its name and age", 0)
  end
end

-- Returns the prefix of the name of the server's present memory: "<run id>:<replication id>:". Both are the server's
-- own, and no data brings them back: the first is new at each start, and the second at each promotion.
local function present_memory()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') .. ':' ..
    string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)') .. ':'
end
