-- Looks whether other clients wait for a read/write lock, and changes nothing.
--
-- KEYS[1]  the lock's hash; it says which server is asked
-- ARGV[1]  the client's uuid
-- ARGV[2]  how many of the channel's subscribers are the asking client itself
-- ARGV[3]  the lock's channel
-- ARGV[4]  the key of a waiting writer's announcement
--
-- Reply: {others}, how many wait
return {others(ARGV[3], ARGV[4], ARGV[1], ARGV[2])}
