-- Looks whether other clients wait for a read/write lock, and changes nothing.
--
-- KEYS[1]  the lock's channel
-- KEYS[2]  the announcement of a waiting writer
-- ARGV[1]  the client's uuid
-- ARGV[2]  how many of the channel's subscribers are the asking client itself
--
-- Reply: {others}, how many wait
return {others(KEYS[1], KEYS[2], ARGV[1], ARGV[2])}
