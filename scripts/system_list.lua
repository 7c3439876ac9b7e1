-- Reads the records of some of the Systems on the list. The records are in the list's slot.
--
-- KEYS[1]  the list, a sorted set: System -> when its record expires, in epoch ms
-- ARGV[1]  the rank of the first of them, from 0
-- ARGV[2]  the rank of the last
--
-- Reply: {how many are on the list, a line for each of those that have a record: TTL of the
-- record in ms, a blank, and what it says}
local lines = {}
for i, system in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2])) do
  local record = KEYS[1] .. ':' .. system
  local says = redis.call('GET', record)
  if says then
    lines[#lines + 1] = redis.call('PTTL', record) .. ' ' .. says
  end
end
return {redis.call('ZCARD', KEYS[1]), table.concat(lines, '\n')}
