-- Counts the other clients that wait for a read/write lock. Changes nothing.
--
-- KEYS[1]  the lock's hash; it decides which server runs the script
-- ARGV[1]  the client's uuid
-- ARGV[2]  how many of the channel's subscribers are this client
-- ARGV[3]  the lock's channel
-- ARGV[4]  the key of the line
-- ARGV[5]  the settings of the line
--
-- Reply: {others}  how many wait
local line = line_of(beside('HGETALL', ARGV[4]) or {}, ARGV[4], ARGV[5], KEYS[1], ARGV[1], '')
return {line.length(ARGV[1]) + line.strangers(ARGV[3], ARGV[2])}
