-- Reads the state of a read/write lock.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  the lock's channel
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), subscribers, number of fields, fields, hold count}. A field is
-- an owner that reads, or owner:write. The fields have blanks between them, and owner:write is the first
-- if there is one. The hold count is that of the first. Both are "" if the lock is free.
--
-- Of a hash with more than 1000 fields only so many are read, so that a hash of a million fields under the
-- lock's name blocks Redis no longer; the number is still that of all fields.
check_lock(KEYS[1])
local most, all = 1000, redis.call('HLEN', KEYS[1])
local fields = all > 0 and redis.call('HRANDFIELD', KEYS[1], most, 'WITHVALUES') or {}
local number, count, all_fields = 0, '', {}
for i = 1, #fields, 2 do
  if fields[i] ~= 'mode' then
    number = number + 1
    local first = number == 1 or string.sub(fields[i], -6) == ':write'
    table.insert(all_fields, first and 1 or number, fields[i])
    count = first and fields[i + 1] or count
  end
end
if all > most then
  number = all - (redis.call('HGET', KEYS[1], 'mode') and 1 or 0)
end
return {redis.call('PTTL', KEYS[1]), redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2], number, table.concat(all_fields, ' '), count}
