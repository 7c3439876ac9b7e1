-- Reads the records of some of the Systems on the list. The records are in the list's slot.
--
-- KEYS[1]  the list, a sorted set: System -> when its record expires, in epoch ms
-- ARGV[1]  the rank of the first of them, from 0
-- ARGV[2]  the rank of the last
--
-- Reply: {how many are on the list, the rank of the first that is not read, a line of text for each System with
-- a record: TTL of the record in ms, a blank, and its text}. At most the first 8193 bytes of a record are read:
-- none has more than 8192. Records that are not strings, and names longer than any System's, are left out. If
-- names are so long that reading them would block Redis, fewer are read.

local list, first, last = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local MAX_NAME_LENGTH, MAX_READ = 64, 1000000
local lines, rank, read = {}, first, 0
while rank <= last and read < MAX_READ do
  local system = redis.call('ZRANGE', list, rank, rank)[1]
  if not system then
    break
  end
  rank, read = rank + 1, read + #system
  local record = list .. ':' .. system
  local says = #system <= MAX_NAME_LENGTH and redis.pcall('GETRANGE', record, 0, 8192)
  if type(says) == 'table' and not string.match(says.err, '^WRONGTYPE') then
    return says
  end
  if type(says) == 'string' and says ~= '' and not string.find(says, '\n', 1, true) then
    lines[#lines + 1] = redis.call('PTTL', record) .. ' ' .. says
  end
end
return {redis.call('ZCARD', list), rank, table.concat(lines, '\n')}
