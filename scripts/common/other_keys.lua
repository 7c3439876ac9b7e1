-- Common part of the scripts that use other keys than those in KEYS.
--
-- A key that may not exist is not in KEYS: while a cluster moves a slot, Redis sends a script to the server that has
-- its KEYS, and refuses a script with several KEYS that are not all there (TRYAGAIN). The other keys of the lock may
-- then be on the other server.

-- Returns the text of an error from Redis's first word on, such as "WRONGTYPE". Redis before 7 puts the line of the
-- script, and "-", before some errors. An error may quote a key, which may be any text, so only the beginning of the
-- text says which error it is.
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
    string.find(words, "^Unable to execute command '[^' ]*' in script because undeclared keys " ..
      "were accessed during rehashing of the slot")
end

-- Runs a command on a key that is not in KEYS. Returns nil if the key is not here, but may be on the other server. The
-- server to which the slot moves reports no error for a single missing key. EXISTS of two keys reports one, on both
-- servers, unless both keys are there; its text is another one from Redis 7.4 and Valkey 8 on.
local function call_if_here(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then
    if is_elsewhere(reply) then
      return nil
    end
    return redis.call(...) -- fails the script with the same error
  end
  return reply
end
