-- Counts the other clients that wait for a read/write lock that readers hold. Removes the entries of clients that no
-- longer listen, and lets readers join that were behind them.
--
-- KEYS[1]  the lock's hash; it decides which server runs the script
-- ARGV[1]  the client's uuid
-- ARGV[2]  the key of the wait queue
-- ARGV[3]  the settings of the wait queue
-- ARGV[4]  the prefix of the keys of read leases
--
-- Reply: {others}  how many wait

--- include common/hash_values.lua
--- include common/wait_queue.lua
--- include common/read_write.lua

local hash = KEYS[1]
local client, queue_key, settings, prefix = unpack(ARGV)
local queue = wait_queue(size_of(queue_key), queue_key, settings, read_write_lock(hash, prefix), client)
local waiting, foreign = queue.others()
if waiting > 0 and value_of(hash, 'mode') == 'read' and queue.transfer_unblocked() then
  waiting, foreign = queue.others()
end
return {waiting + foreign}
