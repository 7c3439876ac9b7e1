-- Takes a fenced lock for its owner, or sets its hold count, and draws fencing tokens. The
-- tokens of a lost reply are wasted: sent again, the script draws later ones. A free lock
-- goes to the first client in its wait queue, if that is another one.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  the hold count wanted; 1 takes a free lock, more needs a lock that is held
-- ARGV[3]  lease, ms
-- ARGV[4]  how many tokens to draw: "<n>", or "<n>+<number>" if they must exceed that number
-- ARGV[5]  the key of its token counter
-- ARGV[6]  the key of the wait queue
-- ARGV[7]  the settings of the wait queue
-- ARGV[8]  the entry that the client adds to the wait queue if it is refused, or ""
-- ARGV[9]  "1": the client was notified of a release since it was last refused
--
-- Reply: {GRANTED, token, ""}   the owner holds the lock; the last token drawn, 0 if none was; the wait queue was empty
--        {OTHERS_WAIT, token, ""}  the same, and it was not
--        {TOKENS_LEFT, 0, ""}   the owner holds the lock; draw.lua must still draw its tokens,
--                               since the counter may be on another server
--        {REFUSED, ttl, other}  another owner holds it, for ttl more ms (-1: no TTL); or it is left
--                               to foreign clients for that time, and other is ""
--        {ABSENT, 0, ""}        the lock is free, so there is nothing to re-enter

--- include common/confirm_entry.lua

local hash = KEYS[1]
local owner, count, lease, wanted, counter, queue_key, settings, entry, notified = unpack(ARGV)

-- Most tries of processes that wait end here.
local held_for, held_by = confirm_entry(hash, owner, count, queue_key, entry)
if held_for then
  return {REFUSED, held_for, held_by}
end

--- include common/take.lua
--- include common/other_keys.lua
--- include common/tokens.lua
--- include common/admit.lua

local free, ttl, other, queue_was_empty = admit(hash, owner, count, queue_key, settings, counter, entry, notified)
if ttl == -2 then
  return {ABSENT, 0, ''}
elseif ttl then
  return {REFUSED, ttl, other}
end
-- The counter comes first: if it is refused, the lock stays as it is.
local status, token = queue_was_empty and GRANTED or OTHERS_WAIT, 0
local counter_ttl = call_if_here('PTTL', counter)
if wanted == '0' then
  if counter_ttl and counter_ttl >= 0 and try_draw(counter, 0, 0) then
    redis.call('PERSIST', counter) -- Redisson's MultiLock puts a TTL on it
  end
elseif not counter_ttl or counter_ttl == -2 and not call_if_here('EXISTS', hash, counter) then
  status = TOKENS_LEFT -- a counter started here would issue the same tokens again
else
  token = draw_tokens(counter, string.match(wanted, '^(%d+)%+?(%d*)$'))
  if counter_ttl >= 0 then
    redis.call('PERSIST', counter)
  end
end
if free then
  take(hash, lease, owner, '1')
else
  redis.call('PEXPIRE', hash, lease)
  redis.call('HSET', hash, owner, count)
end
return {status, token, ''}
