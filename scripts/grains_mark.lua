-- Writes the mark of a member: the highest token that there is, since the replies to some registrations may be on their
-- way. See grains_register.lua.
--
-- KEYS[1]  the entries of the cluster, a hash: grain or member -> entry or mark
-- KEYS[2]  the counter of tokens
-- ARGV[1]  the member
-- ARGV[2]  the highest token that it knows
-- ARGV[3]  the TTL of the entries, ms
--
-- Reply: 1

local entries, counter = unpack(KEYS)
local member, known, ttl = unpack(ARGV)
local token = math.max(redis.call('INCRBY', counter, 0), tonumber(known)) -- the rules for users have no GET
redis.call('PEXPIRE', entries, ttl) -- first: a user who may not set a TTL leaves no key without one
redis.call('HSET', entries, member, member .. '#' .. string.format('%d', token))
redis.call('PEXPIRE', entries, ttl)
return 1
