-- Common part of the scripts for permits that expire; it is put before each of them.
--
-- A refused command must neither lose a permit nor make one. So whatever a change needs is called
-- before with nothing to do.

-- No permit has that id.
local NOBODY = ''

-- The time of permits that never expire, as Redisson writes them.
local NEVER = 922337203685477

-- The time in ms by the server's clock. Those of clients differ.
local function epoch_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
