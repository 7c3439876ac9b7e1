-- Common part of the scripts that use keys beside the lock's hash.
--
-- A key beside the hash may not exist, so it is not in KEYS: while a cluster moves a slot,
-- Redis sends a script to the server that has its key, and refuses a script with several KEYS
-- that are not all there (TRYAGAIN). The other keys may then be on the other server.

-- Returns an error from the first word of Redis on. Redis before 7 puts the line, and "-", before some errors. An
-- error may quote a key, which may be any text, so only its beginning says what it is.
local function words_of(problem)
  local text = type(problem) == 'table' and problem.err or tostring(problem)
  text = string.gsub(text, '^@?user_script: ?%d+: ', '')
  text = string.gsub(text, '^%-', '')
  return (string.gsub(text, '^ERR ', ''))
end

-- Reports whether an error says that a key is not here, but may be on the other server.
local function is_elsewhere(problem)
  local words = words_of(problem)
  return string.find(words, '^Script attempted to access a non local key') or
    string.find(words, '^Lua script attempted to access a non local key') or
    string.find(words, "^Unable to execute command '[^' ]*' in script because undeclared keys were accessed during rehashing of the slot")
end

-- Runs a command on a key beside the hash. Returns nil if the key is not here, but may be on
-- the other server. The new server reports no error for a single missing key; EXISTS of two
-- keys reports one, on both servers, unless both keys are there: that error has another text
-- from Redis 7.4 and Valkey 8 on.
local function beside(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    if is_elsewhere(reply) then
      return nil
    end
    return redis.call(...) -- fails the script with the same error
  end
  return reply
end
