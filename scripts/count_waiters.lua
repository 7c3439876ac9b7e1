-- Counts the other clients that wait for a read/write lock. Changes nothing.
--
-- KEYS[1]  the lock's hash; it decides which server runs the script
-- ARGV[1]  the client's uuid
-- ARGV[2]  how many of the channel's subscribers are this client
-- ARGV[3]  the lock's channel
-- ARGV[4]  the key of a waiting writer's announcement
--
-- Reply: {others}  how many wait
return {others(ARGV[3], ARGV[4], ARGV[1], ARGV[2])}
