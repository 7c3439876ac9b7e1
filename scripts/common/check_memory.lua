-- Common part of the scripts that write the memory of a RedLock's server.

-- Fails if a hash has other fields than the name and the age of a memory, which were read from it: another
-- application then uses the key.
local function check_memory(key, name, age)
  local fields = redis.call('HLEN', key)
  if fields > 0 and not (fields == 2 and string.find(name or '', '^%w+:') and string.find(age or '', '^%d+$')) then
    error("WRONGTYPE the hash of the server's memory has something other than its name and age", 0)
  end
end
