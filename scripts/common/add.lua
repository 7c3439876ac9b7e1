-- Common part of the scripts that add permits; prepended to each of them, after once.lua.

-- Returns the reply and the change of a command that adds permits; see once.
local function add(key, more, if_exists, channel)
  local free = count_of(key)
  if not free and if_exists == '1' then
    return {0, 0}
  end
  free = (free or 0) + tonumber(more)
  check_permits(free)
  if free >= 0 then -- Redisson fails if the number is negative
    redis.call(PUBLISH, channel, free)
  end
  return {1, free}, function() redis.call('INCRBY', key, more) end
end
