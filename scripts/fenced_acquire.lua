-- Takes a fenced lock for its owner, or sets its hold count, and reserves fencing tokens. The
-- tokens of a lost reply are wasted: sent again, the script reserves later ones. If it is another's
-- turn, that one gets the free lock.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
-- ARGV[4]  how many tokens to reserve: "<n>", or "<n>+<number>" if they are to be above that number
-- ARGV[5]  the key of the counter of its tokens
-- ARGV[6]  the key of the line
-- ARGV[7]  the settings of the line
-- ARGV[8]  the place in the line that a client takes if it is refused, or ""
-- ARGV[9]  "1": the client has heard that the lock was released since it was last refused
--
-- Reply: {GRANTED, token, ""}   the owner holds the lock; the last token reserved, 0 if none was
--        {TOKENS_LEFT, 0, ""}   the owner holds the lock; draw.lua must still reserve its tokens,
--                               since the counter may be on another server
--        {REFUSED, ttl, other}  another owner holds it, for ttl more ms (-1: no TTL); or it is left
--                               to clients outside the line for so long, and other is ""
--        {ABSENT, 0, ""}        nobody holds it, so there is nothing to re-enter
local free, ttl, other = admit(KEYS[1], ARGV[1], ARGV[2], ARGV[6], ARGV[7], ARGV[5], ARGV[8], ARGV[9])
if ttl == -2 then
  return {ABSENT, 0, ''}
elseif ttl then
  return {REFUSED, ttl, other}
end
-- The counter comes first: if it is refused, the lock stays as it is.
local status, token = GRANTED, 0
if ARGV[4] == '0' then
  local ends = beside('PTTL', ARGV[5])
  if ends and ends >= 0 and try_draw(ARGV[5], 0, 0) then
    redis.call('PERSIST', ARGV[5]) -- Redisson's MultiLock puts a TTL on it
  end
else
  local ends = beside('PTTL', ARGV[5])
  if not ends or ends == -2 and not beside('EXISTS', KEYS[1], ARGV[5]) then
    status = TOKENS_LEFT -- a counter started here would give tokens out twice
  else
    token = draw_tokens(ARGV[5], string.match(ARGV[4], '^(%d+)%+?(%d*)$'))
    if ends >= 0 then
      redis.call('PERSIST', ARGV[5])
    end
  end
end
if free then
  take(KEYS[1], ARGV[3], ARGV[1], '1')
else
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return {status, token, ''}
