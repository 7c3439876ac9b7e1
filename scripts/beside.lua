-- What the scripts that use keys beside the lock's hash have in common; it stands before
-- each of them.
--
-- Such a key may not exist, so it is not among KEYS: while a cluster moves a slot, Redis
-- sends a script to the server that has its key, and refuses one with several KEYS that are
-- not all there (TRYAGAIN). The other keys may then be on the other server.

-- Runs a command on a key beside the hash. nil: the key is not here, and may be on the
-- other server. The new server does not say so of a single key that it does not have;
-- EXISTS of two keys does, on both, unless both are there.
local function beside(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'non local key', 1, true) then
      return nil
    end
    return redis.call(...) -- fails the script with the same error
  end
  return reply
end
