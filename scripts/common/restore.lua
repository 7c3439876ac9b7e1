-- Common part of the scripts that know of a waiting "restore".
--
-- Its key has "<memory><when it may be carried out, epoch ms>:<how many permits are taken>". That counts only in the
-- memory that wrote it, and as long as the permits that were taken still are, or have been given back: data that comes
-- back from a disk or a replica has an old time, and permits that have vanished since may still be trusted.

--- include common/number.lua
--- include common/other_keys.lua

-- The length of the longest value: two ids, and two numbers.
local MAX_RESTORE = 150

-- Writes a value that restore_of reads, with a TTL for SET.
local function put_restore(key, memory, at, taken, ...)
  redis.call('SET', key, memory .. string.format('%.0f:%.0f', at, taken), ...)
end

-- Returns the memory, the time and the number of permits of a waiting restore; nil if none waits. Fails if the key has
-- another value.
local function restore_of(key, now)
  local text = call_if_here('GETRANGE', key, 0, MAX_RESTORE)
  if not text or text == '' and call_if_here('EXISTS', key) ~= 1 then
    return nil
  end
  local memory, at, taken = string.match(text, '^(%w+:%w+:)(%d+):(%-?%d+)$')
  at, taken = at and exactly(at), taken and exactly(taken)
  local ttl = call_if_here('PTTL', key)
  local is_restore = at and taken and ttl >= 0 and at - now <= ttl and at >= now / 2 -- an earlier time is before 2000
  if not is_restore then
    error('WRONGTYPE ' .. string.gsub(key, '%c', '?') ..
      ' has something other than when the number of permits is set again; delete it', 0)
  end
  return memory, at, taken
end
