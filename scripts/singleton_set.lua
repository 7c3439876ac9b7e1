-- Writes where the instance of a singleton is, or what an instance had begun when it stopped. The writer with the
-- highest token wins, however late the others come. A token above the counter is from before Redis lost the counter:
-- its instance has gone, or has lost the lock.
--
-- KEYS[1]  the whereabouts of the singleton, a hash
-- ARGV[1]  the field, "at" or "left": lines, the newest first, each of which begins with a token
-- ARGV[2]  the fencing token of the writer's hold
-- ARGV[3]  the rest of the line
-- ARGV[4]  how many lines the field keeps; fewer if they are too long together
-- ARGV[5]  the TTL of the hash in ms
-- ARGV[6]  the key of the lock's token counter
--
-- Reply: 1, or 0 if the field was written with a higher token, the token is above the counter, or the line is too long

--- include common/other_keys.lua
--- include common/whereabouts.lua

local whereabouts = KEYS[1]
local field, token_text, text, max_lines, ttl, counter = unpack(ARGV)
local token = tonumber(token_text)
max_lines = tonumber(max_lines)
local last = tonumber(call_if_here('GETRANGE', counter, 0, 20) or '') or math.huge -- unknown: the counter is missing
if token > last then
  return 0
end
local at, left = read_whereabouts(whereabouts)
local lines = {token_text .. ' ' .. text}
local size = #lines[1]
for line in string.gmatch(field == 'at' and at or left, '[^\n]+') do
  local other = tonumber(string.match(line, '^%d+')) or 0
  if other > token and other <= last then
    return 0
  elseif other < token and #lines < max_lines and size + 1 + #line <= MAX_READ then
    lines[#lines + 1], size = line, size + 1 + #line
  end
end
if size > MAX_READ then
  return 0
end

redis.call('PEXPIRE', whereabouts, ttl) -- first: a user who may not set a TTL leaves no key without one
redis.call('HSET', whereabouts, field, table.concat(lines, '\n'))
redis.call('PEXPIRE', whereabouts, ttl)
return 1
