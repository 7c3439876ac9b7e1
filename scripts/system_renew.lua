-- Writes the record of a System, with a TTL, and puts the System on the list of all of them.
-- Those whose record has expired leave the list. A list that has members, but no Systems, belongs to another
-- application: it is refused. Other members of a list of Systems stay there.
--
-- KEYS[1]  the list, a sorted set: System -> when its record expires, in epoch ms
-- KEYS[2]  the record, a string
-- ARGV[1]  the System, the first three groups of a UUID
-- ARGV[2]  the text of the record
-- ARGV[3]  the record's TTL in ms
--
-- Reply: 1

--- include common/clock.lua

local list, record = KEYS[1], KEYS[2]
local system, text, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now = epoch_ms()
local DIGIT = '[0-9a-f]'
local SYSTEM = '^' .. string.rep(DIGIT, 8) .. '%-' .. string.rep(DIGIT, 4) .. '%-' .. string.rep(DIGIT, 4) .. '$'
local MAX_SEEN, MAX_EXPIRED, MAX_READ = 16, 1000, 1000000

-- Reports whether one of the members is a System, or there are none.
local function has_system(members)
  for _, member in ipairs(members) do
    if string.find(member, SYSTEM) then
      return true
    end
  end
  return not members[1]
end

-- Reports whether the list has Systems, or is empty. The first member is checked before others, which may be large.
local function is_ours()
  return redis.call('ZSCORE', list, system)
    or has_system(redis.call('ZRANGE', list, 0, 0))
    or has_system(redis.call('ZRANGE', list, 0, MAX_SEEN - 1))
    or has_system(redis.call('ZRANGE', list, -1, -1))
end

if not is_ours() then
  error('WRONGTYPE the sorted set of all Systems belongs to another application', 0)
end
-- A full Redis refuses a SET, unless another write comes before it: the record of a process that lives stays.
if redis.call('PTTL', record) > 0 then
  redis.call('PEXPIRE', record, ttl)
end
redis.call('SET', record, text, 'PX', ttl)

-- Systems whose records have expired leave the list.
local stay, read = 0, 0 -- how many other members stay, and how many bytes they have: they may be large
for _ = 1, MAX_EXPIRED do
  local member = read < MAX_READ and redis.call('ZRANGE', list, '-inf', now, 'BYSCORE', 'LIMIT', stay, 1)[1]
  if not member then
    break
  elseif string.find(member, SYSTEM) then
    redis.call('ZREM', list, member)
  else
    stay, read = stay + 1, read + #member
  end
end

local longest = math.max(redis.call('PTTL', list), ttl)
redis.call('PEXPIRE', list, longest) -- a user who may not set a TTL fails here, and leaves no list without one
redis.call('ZADD', list, now + ttl, system)
redis.call('PEXPIRE', list, longest)
return 1
