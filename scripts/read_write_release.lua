-- Ends all holds of an owner on a read/write lock, and takes its client out of the line. Whoever is
-- next in the line gets a lock that becomes free.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner
-- ARGV[2]  the prefix of the keys of read leases
-- ARGV[3]  the lock's channel
-- ARGV[4]  the key of the line
-- ARGV[5]  the settings of the line
--
-- Reply: 0 if the owner held the lock, else -1. When the lock becomes free and nobody in the line
-- gets it, "1" (wake all) is published after a writer, and "0" (wake one) after the last reader.
local hash, prefix = KEYS[1], ARGV[2]
local held = redis.call('HMGET', hash, ARGV[1], ARGV[1] .. ':write')
local ours = held[1] or held[2]
local free = ours and leave(hash, ARGV[1], prefix, held[1])
-- Whatever is wrong with the line, the lock is released.
local here, fields = pcall(entries_of, ARGV[4])
local ok, passed = true, false
if here and fields and fields[1] then
  ok, passed = pcall(function()
    local line = line_of(fields, ARGV[4], ARGV[5], hash, ARGV[1], '', give_to(hash, prefix))
    if ours then
      line.leave()
    elseif value_of(hash, 'mode') == 'read' then
      if line.leave() then
        line.pass_on(true) -- it was a writer that kept them back
      end
    else
      line.give_up(ARGV[3])
    end
    return free and line.hand_over(line.length(), line.strangers(ARGV[3]))
  end)
end
if not ours then
  return -1
elseif free and not (ok and passed) then
  redis.call('PUBLISH', ARGV[3], held[2] and '1' or '0')
end
return 0
