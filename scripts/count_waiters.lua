-- Counts the other clients that wait for a read/write lock. Changes nothing.
--
-- KEYS[1]  the lock's hash; it decides which server runs the script
-- ARGV[1]  the client's uuid
-- ARGV[2]  how many of the channel's subscribers are this client
-- ARGV[3]  the lock's channel
-- ARGV[4]  the key of a waiting writer's announcement
-- ARGV[5]  the key of the line
-- ARGV[6]  the settings of the line
--
-- Reply: {others}  how many wait
local line = line_of(beside('HGETALL', ARGV[5]) or {}, ARGV[5], ARGV[6], KEYS[1], ARGV[1], '')
local others = line.length(ARGV[1]) + line.strangers(ARGV[3], ARGV[2])
return {math.max(others, announced(ARGV[4], ARGV[1]) and 1 or 0)}
