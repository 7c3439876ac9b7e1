-- Common part of the scripts that meet the holder of a plain or a fenced lock.

-- Asks the process of a holder for the lock, which may linger there without a hold; see internal/lock/linger.go. Only
-- processes in which locks may linger subscribe to this channel. The message has the form of a transfer's, with 0 for
-- the command and the token.
local function ask_holder(hash, holder)
  local client, term = string.match(holder, '^([^:]*):([1-9]%d*)$')
  if client then
    redis.pcall(PUBLISH, TURN_CHANNEL .. client .. ASKED, term .. ' 0 0 ' .. hash)
  end
end
