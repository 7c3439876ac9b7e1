-- Yields several locks that one owner has taken together: ends its holds, passes each lock on, and
-- takes a place at the end of all lines. One script does that, so that those who want several locks
-- stand in the same order in all of their lines.
--
-- KEYS[i]  the hash of the i-th lock
-- ARGV[1]  owner
-- ARGV[2]  the settings of the lines
-- ARGV[3]  the place that the client takes, or ""
-- ARGV[4i], ARGV[1+4i], ARGV[2+4i], ARGV[3+4i]
--          the kind of the i-th lock: plain, fenced, read, or write; the prefix of the keys of its
--          read leases, of a read/write lock, or the key of its counter of tokens; the key of its
--          line; and its channel
--
-- Reply: {RELEASED, 0}  the owner held all locks
--        {ABSENT, 0}    it did not; those that it held are released
local owner, held_all, lines = ARGV[1], true, {}
for i, hash in ipairs(KEYS) do
  local kind, prefix, key, channel = ARGV[4 * i], ARGV[1 + 4 * i], ARGV[2 + 4 * i], ARGV[3 + 4 * i]
  local counter, give, held, free, wrote = '', give_to(hash, prefix), nil, nil, nil
  if kind == 'read' or kind == 'write' then
    local mine = redis.call('HMGET', hash, owner, owner .. ':write')
    held, wrote = mine[1] or mine[2], mine[2]
    free = held and leave(hash, owner, prefix, mine[1])
  else
    counter = prefix
    give = function(to, _, ttl)
      take(hash, ttl, to, '1')
    end
    held = redis.call('HDEL', hash, owner) == 1
    free = held
  end
  held_all = held_all and held
  local fields, passed = entries_of(key), false
  if fields and (fields[1] or ARGV[3] ~= '') then
    local line = line_of(fields, key, ARGV[2], hash, owner, counter, give)
    if held or ARGV[3] ~= '' then
      line.leave()
      passed = free and line.hand_over(line.length(), line.strangers(channel))
    else
      line.give_up(channel)
    end
    lines[#lines + 1] = line
  end
  if free and not passed then
    redis.call('PUBLISH', channel, wrote and '1' or '0')
  end
end
for _, line in ipairs(lines) do
  line.enter(ARGV[3], true)
end
return {held_all and RELEASED or ABSENT, 0}
