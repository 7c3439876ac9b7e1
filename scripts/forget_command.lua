-- Removes the record of a client's last command about a key. No copy of a command may still be on its
-- way: it would be carried out a second time.
--
-- KEYS[1]  the record of the client's last command
-- ARGV[1]  the number of that command; the record of a later one stays
--
-- Reply: how many records were removed, 0 or 1

--- include common/record.lua

local record, command = KEYS[1], ARGV[1]
local last = read_record(record)
if not last or tonumber(last) > tonumber(command) then
  return 0
end
return redis.call('DEL', record)
