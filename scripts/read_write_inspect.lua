-- Reads the state of a read/write lock.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  the lock's channel
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), subscribers, number of fields, fields, hold count}. A field is
-- an owner that reads, or owner:write. The fields have blanks between them, and owner:write is the first
-- if there is one. The hold count belongs to the first field. Both are "" if the lock is free.
--
-- Of a hash with more than 1000 fields only 1000 are read, so that a hash of a million fields under the
-- lock's name does not block Redis; the number still counts all fields.

--- include common/foreign_hash.lua
--- include common/hash_values.lua

local hash, channel = KEYS[1], ARGV[1]
check_lock(hash)
local max, all = 1000, redis.call('HLEN', hash)
local number, owners, count = 0, {}, ''
for _, field in ipairs(redis.call('HRANDFIELD', hash, max)) do
  local holds = is_owner(field) and count_in(hash, field)
  if holds then
    number = number + 1
    if number == 1 or string.sub(field, -6) == ':write' then
      table.insert(owners, 1, field)
      count = holds
    else
      owners[number] = field
    end
  end
end
if all > max then
  number = all - redis.call('HEXISTS', hash, 'mode')
end
local left, subscribers = redis.call('PTTL', hash), redis.call('PUBSUB', NUMSUB, channel)[2]
return {left, subscribers, number, table.concat(owners, ' '), count}
