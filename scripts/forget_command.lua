-- Removes the record of a client's last command about a key. No copy of a command may still be on its
-- way: it would be carried out a second time.
--
-- KEYS[1]  the record of the client's last command
-- ARGV[1]  the number of that command; the record of a later one stays
--
-- Reply: how many records were removed, 0 or 1
local record = redis.call('GETRANGE', KEYS[1], 0, 100) -- it has at most 100 bytes; see common/once.lua
local number, reply = string.match(record, '^(%d+)(.*)$')
if not number or string.gsub(reply, ' %-?%d+', '') ~= '' or #record > 100 or tonumber(number) > tonumber(ARGV[1]) then
  return 0
end
return redis.call('DEL', KEYS[1])
