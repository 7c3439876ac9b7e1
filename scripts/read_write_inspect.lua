-- Reads the state of a read/write lock.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  the lock's channel
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), subscribers, number of fields, fields, hold count}. A field is
-- an owner that reads, or owner:write. The fields have blanks between them, and owner:write is the first
-- if there is one. The hold count is that of the first. Both are "" if the lock is free.
--
-- Of a hash with more than 1000 fields only 1000 are read, so that a hash of a million fields under the
-- lock's name does not block Redis; the number is still that of all fields.
check_lock(KEYS[1])
local most, all = 1000, redis.call('HLEN', KEYS[1])
local number, owners = 0, {}
for _, field in ipairs(redis.call('HRANDFIELD', KEYS[1], most)) do
  if is_owner(field) then
    number = number + 1
    local first = number == 1 or string.sub(field, -6) == ':write'
    table.insert(owners, first and 1 or number, field)
  end
end
local count = owners[1] and (value_of(KEYS[1], owners[1]) or '-') or ''
if not string.find(count, '^%d*$') then
  refuse_foreign('the key is a hash with a hold count that is not a number')
end
if all > most then
  number = all - redis.call('HEXISTS', KEYS[1], 'mode')
end
return {redis.call('PTTL', KEYS[1]), redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2], number, table.concat(owners, ' '), count}
