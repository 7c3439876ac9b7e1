-- Draws fencing tokens of a lock that its owner holds, after fenced_acquire could not.
--
-- KEYS[1]  the counter of the lock's tokens
-- ARGV[1]  how many tokens to draw, as in fenced_acquire
--
-- Reply: {GRANTED, token, ""}  the last token drawn, as in fenced_acquire

--- include common/tokens.lua

local counter, wanted = KEYS[1], ARGV[1]
local token = draw_tokens(counter, string.match(wanted, '^(%d+)%+?(%d*)$'))
redis.call('PERSIST', counter)
return {GRANTED, token, ''}
