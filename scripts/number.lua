-- Common part of the scripts that calculate with a number of Redis; it is put before each of them.
--
-- A number of Lua is a double: it is exact up to 2^53. What is beyond that, or is not written as Redis
-- writes an integer, is refused.

local MOST = 9007199254740991 -- 2^53 - 1

-- Returns the number that a text says; nil if it says none that is exact.
local function exactly(text)
  if text == '0' or #text <= 17 and string.find(text, '^-?[1-9]%d*$') then
    local n = tonumber(text)
    return math.abs(n) <= MOST and n or nil
  end
end

-- How long an integer of Redis is at most. A value that is longer is none, and may be large.
local MOST_DIGITS = 20

-- Returns the beginning of what a key has, or nil if there is no such key.
local function text_of(key)
  local text = redis.call('GETRANGE', key, 0, MOST_DIGITS)
  return (text ~= '' or redis.call('EXISTS', key) == 1) and text or nil
end

-- Reports whether a value is an integer, be it too large or with zeros before it. Any other value is another
-- application's, and must be neither shown nor replaced: also a date, or the number of a card or a telephone.
local function is_number(value)
  return #value <= MOST_DIGITS and string.find(value, '^%-?%d+$')
end

-- Fails the script since the value of a key is refused.
local function refuse_value(key, value, wanted)
  local name = string.gsub(key, '%c', '?')
  if is_number(value) then
    error('ERR ' .. name .. ' is "' .. value .. '", but ' .. wanted, 0)
  end
  error('WRONGTYPE ' .. name .. ' is no number, but ' .. wanted, 0)
end
