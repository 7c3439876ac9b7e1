-- Frees a fair lock if one of the named owners holds it; see force_release.lua. Keeps its queue, and wakes the
-- first waiter.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  its queue, a list of owners
-- ARGV[2]  its timeouts, a sorted set: owner -> when it counts as dead, epoch ms
-- ARGV[3]  the prefix of its channels; each waiter listens on its own, ARGV[3]:owner, and a MultiLock, which
--          is in no queue, on ARGV[3]
-- ARGV[4…] the owners
--
-- Reply: 1 if one of them held it, else 0

--- include common/clock.lua
--- include common/other_keys.lua
--- include common/foreign_hash.lua
--- include common/fair_queue.lua
--- include common/force.lua

local hash = KEYS[1]
local queue, timeouts, channel = ARGV[1], ARGV[2], ARGV[3]
check_lock(hash)
local now = epoch_ms()
local reachable = call_if_here('EXISTS', queue, timeouts) -- without both, no waiter counts as dead
local first = call_if_here('LINDEX', queue, 0)
local evicted = 0
read_checked('LRANGE', call_if_here, queue, MAX_SEEN)
read_checked('ZRANGE', call_if_here, timeouts, MAX_SEEN)
while reachable and first and is_owner(first) and evicted < MAX_ENTRIES do
  local score = call_if_here('ZSCORE', timeouts, first)
  if score and tonumber(score) > now then
    break
  end
  call_if_here('LPOP', queue)
  call_if_here('ZREM', timeouts, first)
  first, evicted = call_if_here('LINDEX', queue, 0), evicted + 1
end
local held = end_named(hash, 4)
if held or evicted > 0 then
  local waiter = first and is_owner(first) and ':' .. first or '' -- a MultiLock is in no queue
  redis.call(PUBLISH, channel .. waiter, '0')
end
return held and 1 or 0
