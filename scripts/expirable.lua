-- Common part of the scripts for permits that expire; it is put before each of them.
--
-- A refused command must neither lose a permit nor make one. So whatever a change needs is called
-- before with nothing to do.

-- No permit has that id, and no member of another application's set is likely to be that.
local NO_PERMIT = 'the id of no permit'

-- Fails if one of these is no id of a permit: the sorted set then belongs to another application.
local function check_ids(ids)
  for _, id in ipairs(ids) do
    if #id ~= 16 then
      error('WRONGTYPE the sorted set of the permits that are taken has other members than ids of 16 bytes', 0)
    end
  end
end

-- How many of its members are looked at, unless they are to be removed.
local MOST_SEEN = 16

-- Fails if one of some members is no id, and returns when the first expires; nil if there is none. The first is looked
-- at before the others, which may be large if they are another application's.
local function check_taken(key)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  check_ids({first[1]})
  if first[1] then
    check_ids(redis.call('ZRANGE', key, 0, MOST_SEEN - 1))
    check_ids(redis.call('ZRANGE', key, -1, -1))
  end
  return first[2]
end

-- How many expired permits become free at once. To free more would block Redis for long; the next command goes on.
local MOST_EXPIRED = 1000

-- The time of permits that never expire, as Redisson writes them.
local NEVER = 922337203685477

-- The time in ms by the server's clock. Those of clients differ.
local function epoch_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
