-- Common part of the scripts that add permits; it is put before each of them, behind once.lua.

-- Decides how many permits there are with so many more; see once.
local function add(key, more, if_exists, channel)
  local free = count_of(key)
  if not free and if_exists == '1' then
    return {0, 0}
  end
  free = (free or 0) + tonumber(more)
  check_permits(free)
  if free >= 0 then -- Redisson fails over a negative one
    redis.call('PUBLISH', channel, free)
  end
  return {1, free}, function() redis.call('INCRBY', key, more) end
end
