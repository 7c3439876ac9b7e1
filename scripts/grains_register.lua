-- Makes a member of a cluster responsible for a grain, unless the member of the expected entry still has its lease. The
-- entry of a grain, and the mark of a member in the same hash, is "<member>#<token>"; see grains/store.go.
--
-- KEYS[1]  the entries of the cluster, a hash: grain or member -> entry or mark
-- KEYS[2]  the counter of tokens
-- KEYS[3]  the lease of this member
-- KEYS[4]  the lease of the member of the expected entry; this member's lease if no entry is expected
-- ARGV[1]  the grain
-- ARGV[2]  this member
-- ARGV[3]  the expected entry, or ""
-- ARGV[4]  the highest token that this process knows
-- ARGV[5]  the highest token of this term of the member
-- ARGV[6]  the TTL of the entries, ms
--
-- Reply: {"mine", token}     the member is responsible, and may start the grain with this token
--        {"changed", entry}  the entry is another one than was expected; "" if there is none
--        {"held", ""}        the other member has its lease
--        {"lost", ""}        this member has lost its lease
-- It fails if another application has written the entry, or the next token would not be exact.

local entries, counter, lease, other_lease = unpack(KEYS)
local grain, member, expected, known, last, ttl = unpack(ARGV)
local entry = redis.call('HGET', entries, grain) or ''
if entry ~= '' and not string.find(entry, '#%d+$') then
  return redis.error_reply('WRONGTYPE the entries of the grains belong to another application')
elseif entry ~= expected then
  return {'changed', entry}
end
if other_lease ~= lease and redis.call('EXISTS', other_lease) == 1 then
  return {'held', ''}
end
if redis.call('EXISTS', lease) == 0 then
  return {'lost', ''}
end
local token = redis.call('INCRBY', counter, 1)
local above = math.max(token, tonumber(known) + 1)
if token < 1 or above > 9007199254740991 then -- a number of Lua is exact up to 2^53
  redis.call('INCRBY', counter, -1)
  return redis.error_reply('BADVALUE the counter of the tokens of the grains goes from 0 to 9007199254740991, ' ..
    'or this process has had the last token')
elseif token < above then
  token = above
  redis.call('SET', counter, string.format('%d', token))
end
local value = member .. '#' .. string.format('%d', token)
redis.call('PEXPIRE', entries, ttl) -- first: a user who may not set a TTL leaves no key without one
redis.call('HSET', entries, grain, value)
redis.call('PEXPIRE', entries, ttl)
local mark = redis.call('HGET', entries, member) or ''
if tonumber(string.match(mark, '%d+$') or 0) >= tonumber(last) then
  redis.call('HSET', entries, member, value)
end
return {'mine', string.format('%d', token)}
