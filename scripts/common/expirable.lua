-- Common part of the scripts of the expirable semaphore.
--
-- A refused command must neither lose a permit nor make one. So each Redis command that a change needs is called
-- before it without effect.

-- Not the id of a permit, and unlikely to be a member of another application's set.
local NO_PERMIT = 'the id of no permit'

-- Fails if one of these is not the id of a permit: the sorted set then belongs to another application.
local function check_ids(ids)
  for _, id in ipairs(ids) do
    if #id ~= 16 then
      error('WRONGTYPE the sorted set of the permits that are taken has other members than ids of 16 bytes', 0)
    end
  end
end

-- How many members of the set are checked, unless they are to be removed.
local MAX_SEEN = 16

-- Checks some members, and returns when the first expires, nil if there is none. The first is checked before the
-- others, which may be large if they are another application's.
local function check_taken(key)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  check_ids({first[1]})
  if first[1] then
    check_ids(redis.call('ZRANGE', key, 0, MAX_SEEN - 1))
    check_ids(redis.call('ZRANGE', key, -1, -1))
  end
  return first[2]
end

-- How many expired permits one command frees: more would block Redis for long. The next command frees more.
local MAX_EXPIRED = 1000

-- The time of permits that never expire, as Redisson writes them.
local NEVER = 922337203685477
