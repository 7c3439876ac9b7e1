-- Common part of the scripts that calculate with a number of Redis.
--
-- A number of Lua is a double: it is exact up to 2^53. Larger numbers, and texts that are not
-- written as Redis writes an integer, are refused.

local MAX_NUMBER = 9007199254740991 -- 2^53 - 1

-- Returns the number that a text stands for, nil if that is not exact.
local function exactly(text)
  if text == '0' or #text <= 17 and string.find(text, '^-?[1-9]%d*$') then
    local n = tonumber(text)
    return math.abs(n) <= MAX_NUMBER and n or nil
  end
end

-- The length of the longest integer in Redis. A longer value is not a number, and may be large.
local MAX_DIGITS = 20

-- Returns the beginning of a key's value, or nil if there is no such key.
local function text_of(key)
  local text = redis.call('GETRANGE', key, 0, MAX_DIGITS)
  return (text ~= '' or redis.call('EXISTS', key) == 1) and text or nil
end

-- Reports whether a value is an integer, even a too large one or one with leading zeros. Any other value belongs to
-- another application, and must be neither shown nor replaced: it may be a date, or the number of a card or a phone.
local function is_number(value)
  return #value <= MAX_DIGITS and string.find(value, '^%-?%d+$')
end

-- Fails the script because of the value of a key. As in every error of a script, the code comes before the name, so
-- that no name looks like a code.
local function refuse_value(key, value, wanted)
  local name = string.gsub(key, '%c', '?')
  if is_number(value) then
    error('BADVALUE ' .. name .. ' is "' .. value .. '", but ' .. wanted, 0)
  end
  error('WRONGTYPE ' .. name .. ' is not a number, but ' .. wanted, 0)
end
