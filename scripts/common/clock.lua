-- Common part of the scripts that compare times with the clock.

-- Returns the time (epoch, ms) by the server's clock: the clocks of clients differ.
local function epoch_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
