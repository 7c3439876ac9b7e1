-- Leaves a lock to expire, after the minimum time of a hold that has ended. Replaces the owner, so that no late command
-- of its term changes the key.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner
-- ARGV[2]  the owner that replaces it
-- ARGV[3]  the rest of the time, ms
--
-- Reply: RENEWED, also if it was replaced before; GONE if there is no key, TAKEN if it belongs to another owner

--- include common/foreign_fields.lua

local hash = KEYS[1]
local owner, keeper, rest = unpack(ARGV)
local fields = redis.call('HLEN', hash)
local held, kept = redis.call('HEXISTS', hash, owner), redis.call('HEXISTS', hash, keeper)
if held + kept == 0 then
  return fields == 0 and GONE or TAKEN
elseif fields > held + kept then -- no client gets the lock while another application has something there
  redis.call('HDEL', hash, owner, keeper)
  keep_foreign(hash)
  return RENEWED
end
local left = redis.call('PTTL', hash)
if held == 0 and left >= 0 and left < tonumber(rest) then -- this command is late, or repeated for a replica
  rest = math.max(left, 1)
end
redis.call('PEXPIRE', hash, rest) -- first: a command that is refused leaves no key without a TTL
redis.call('HSET', hash, keeper, '1')
redis.call('HDEL', hash, owner)
return RENEWED
