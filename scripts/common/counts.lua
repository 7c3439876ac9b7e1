-- Common part of the scripts of semaphores and latches: how many permits are free, or count-downs are missing.

--- include common/number.lua

-- The largest number of permits that Redisson can read.
local MAX_PERMITS = 2147483647

-- Fails the script if the number of free permits would be out of range.
local function check_permits(free)
  if math.abs(free) > MAX_PERMITS then
    error('BADVALUE there would be ' .. (free > 0 and 'more than ' or 'fewer than -') .. MAX_PERMITS .. ' permits', 0)
  end
end

-- Returns the number under a key, or nil if there is no such key. Fails if it is further than max from zero.
local function number_of(key, max, what)
  local value = text_of(key)
  local n = value and exactly(value)
  if value and not (n and math.abs(n) <= max) then
    refuse_value(key, value, 'the number of ' .. what .. ' is an integer up to ' .. string.format('%.0f', max) ..
      '; delete the key, and set the number again')
  end
  return n or nil
end

-- Returns how many permits are free, or nil if there is no such key.
local function count_of(key)
  return number_of(key, MAX_PERMITS, 'permits')
end
