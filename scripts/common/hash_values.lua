-- Common part of the scripts that read single fields of a lock's hash.

--- include common/foreign_hash.lua

-- Returns the value of a field of a lock's hash; nil if there is none, or it is longer than a hold count.
local function value_of(hash, field)
  local length = redis.call('HSTRLEN', hash, field)
  return length > 0 and length <= MAX_COUNT_LENGTH and redis.call('HGET', hash, field) or nil
end

-- Returns the hold count in a field of a lock's hash; nil if the field is not there, or has another value.
local function count_in(hash, field)
  local value = value_of(hash, field)
  return value and string.find(value, '^%d+$') and value or nil
end
