-- Reads the record of a System. The caller knows only the owner field of a lock, so the record may
-- be missing; it is in the slot of the list.
--
-- KEYS[1]  the list of all Systems, a sorted set
-- ARGV[1]  the System
--
-- Reply: {TTL of the record in ms (-2: there is none), its text, or ""}. At most the first 8193 bytes
-- of it are read: no record has more than 8192.

local list, system = KEYS[1], ARGV[1]
local record = list .. ':' .. system
return {redis.call('PTTL', record), redis.call('GETRANGE', record, 0, 8192)}
