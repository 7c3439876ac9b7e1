-- Common part of the scripts that use keys beside the lock's hash; prepended to each of
-- them.
--
-- A key beside the hash may not exist, so it is not in KEYS: while a cluster moves a slot,
-- Redis sends a script to the server that has its key, and refuses a script with several KEYS
-- that are not all there (TRYAGAIN). The other keys may then be on the other server.

-- Runs a command on a key beside the hash. Returns nil if the key is not here, but may be on
-- the other server. The new server reports no error for a single missing key; EXISTS of two
-- keys reports one, on both servers, unless both keys are there: that error has another text
-- from Redis 7.4 and Valkey 8 on.
local function beside(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'non local key', 1, true) or string.find(reply.err, 'during rehashing of the slot', 1, true) then
      return nil
    end
    return redis.call(...) -- fails the script with the same error
  end
  return reply
end
