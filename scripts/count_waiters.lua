-- Counts the other clients that wait for a read/write lock. Changes nothing but the line, of which
-- it removes who has gone.
--
-- KEYS[1]  the lock's hash; it decides which server runs the script
-- ARGV[1]  the client's uuid
-- ARGV[2]  the lock's channel
-- ARGV[3]  the key of the line
-- ARGV[4]  the settings of the line
--
-- Reply: {others}  how many wait
local line = line_of(entries_of(ARGV[3]) or {}, ARGV[3], ARGV[4], KEYS[1], ARGV[1], '')
return {line.length() + line.strangers(ARGV[2])}
