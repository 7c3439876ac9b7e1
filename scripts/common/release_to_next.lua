-- The second part of release.lua: transfers a lock to the only process in its wait queue. Most releases of
-- contended locks end here. It does the same as wait_queue.lua in half the time, and leaves rarer cases and
-- all errors to it.
if freed and not foreign and #fields == 2 then
  local ok, done = pcall(function()
    local client = fields[1]
    local seen, ttl, term, seq = string.match(fields[2], '^%d+ (%d+) (%d+) (%d+) (%d+) 0 0 1$')
    local open_time, every = string.match(settings, '^(%d+) 1 (%d+)$')
    if not seen or #client ~= 36 or #ttl > 13 or tonumber(ttl) > LONGEST_ENTRY
      or not open_time or string.find(owner, client, 1, true) then
      return false
    end
    local clock = redis.call('TIME')
    local now = clock[1] * 1000000 + clock[2]
    if math.abs(now - seen) >= ttl * 1000 or every ~= '0' and now / 1000 % every < math.min(open_time, every / 100) then
      return false
    end
    local turn = 'lockkeeper_turn:' .. client
    local waiters = 'lockkeeper_waiters' .. string.sub(queue_key, #'lockkeeper_wait_queue' + 1)
    local n = redis.call('PUBSUB', 'NUMSUB', turn, channel, waiters)
    if n[2] == 0 or n[4] > n[6] then
      return false
    end
    redis.call('HDEL', queue_key, client)
    take(hash, ttl, client .. ':' .. term, '1')
    redis.call('PUBLISH', turn, term .. ' ' .. seq .. ' 0 ' .. hash)
    return true
  end)
  if ok and done then
    return 0
  end
end
