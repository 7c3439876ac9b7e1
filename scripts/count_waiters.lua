-- Counts the other clients that wait for a read/write lock. Changes only the wait queue: removes
-- the entries of clients that no longer listen.
--
-- KEYS[1]  the lock's hash; it decides which server runs the script
-- ARGV[1]  the client's uuid
-- ARGV[2]  the key of the wait queue
-- ARGV[3]  the settings of the wait queue
--
-- Reply: {others}  how many wait
local queue = wait_queue(fields_of(ARGV[2]) or {}, ARGV[2], ARGV[3], KEYS[1], ARGV[1], '')
return {queue.length() + queue.foreign_clients()}
