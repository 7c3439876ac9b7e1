-- Reads the records of some of the Systems on the list. The records are in the list's slot.
--
-- KEYS[1]  the list, a sorted set: System -> when its record expires, in epoch ms
-- ARGV[1]  the rank of the first of them, from 0
-- ARGV[2]  the rank of the last
--
-- Reply: {how many are on the list, a line for each of those that have a record: TTL of the
-- record in ms, a blank, and what it says}. At most the first 4097 bytes of a record are read: none has
-- more than 4096. What is no string is left out.
local lines = {}
for i, system in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2])) do
  local record = KEYS[1] .. ':' .. system
  local says = redis.pcall('GETRANGE', record, 0, 4096)
  if type(says) == 'table' and not string.match(says.err, '^WRONGTYPE') then
    return says
  end
  if type(says) == 'string' and says ~= '' and not string.find(says, '\n', 1, true) then
    lines[#lines + 1] = redis.call('PTTL', record) .. ' ' .. says
  end
end
return {redis.call('ZCARD', KEYS[1]), table.concat(lines, '\n')}
