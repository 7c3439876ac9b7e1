-- Reads the state of a read/write lock.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  the lock's channel
--
-- Reply: {ttl in ms (-1: no TTL, -2: free), subscribers, fields, field, hold count}. A field is
-- an owner that reads, or owner:write. The last two describe one field, owner:write if there is
-- one, and are "" if the lock is free.
local fields = redis.call('HGETALL', KEYS[1])
local number, field, count = 0, '', ''
for i = 1, #fields, 2 do
  if fields[i] ~= 'mode' then
    number = number + 1
    if field == '' or string.sub(fields[i], -6) == ':write' then
      field, count = fields[i], fields[i + 1]
    end
  end
end
return {redis.call('PTTL', KEYS[1]), redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2], number, field, count}
