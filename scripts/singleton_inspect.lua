-- Reads where the instance of a singleton is, and what the last instances had begun when they stopped.
--
-- KEYS[1]  the whereabouts of the singleton, a hash
-- ARGV     none
--
-- Reply: {at, left}; each is "" if it is missing, or too long to be from an instance
local whereabouts = KEYS[1]
local MOST_READ = 4000000

local function read(field)
  if redis.call('HSTRLEN', whereabouts, field) > MOST_READ then
    return ''
  end
  return redis.call('HGET', whereabouts, field) or ''
end

return {read('at'), read('left')}
