-- Gives permits back at the hand-off limit, if other clients wait for permits.
--
-- KEYS[1]  the semaphore, a string: the permits that are free
-- KEYS[2]  the record of the client's last command
-- ARGV[1]  the number of the command
-- ARGV[2]  how many permits
-- ARGV[3]  "1": only if the semaphore exists; otherwise it is created
-- ARGV[4]  the semaphore's channel, on which the free permits are published
-- ARGV[5]  how many connections of the client listen on that channel
-- ARGV[6]  "1" gives them back even if no other client is seen to wait: some wait without subscribing
--
-- Reply: {1: given back, 0: no other client waits, NO_KEY: the semaphore does not exist; the permits
-- that are free then}
local semaphore, record = KEYS[1], KEYS[2]
local command, permits, if_exists, channel, connections, forced = unpack(ARGV)
return once(record, command, function()
  local free = count_of(semaphore)
  if not free and if_exists == '1' then
    return {NO_KEY, 0}
  end
  local listeners = redis.call('PUBSUB', NUMSUB, channel)[2]
  if free and free >= 0 and listeners <= tonumber(connections) and forced ~= '1' then
    return {KEPT, free}
  end
  local reply, change = add(semaphore, permits, if_exists, channel)
  return {RELEASED, reply[2]}, change
end)
