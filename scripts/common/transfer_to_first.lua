-- Common part of the script that releases a plain or a fenced lock.

--- include common/take.lua

-- Transfers a free lock to the first client in its wait queue if only clients that listen wait. Does the same as
-- wait_queue_transfer.lua, and leaves rarer cases and all errors to it. So a release takes 0.4 of the CPU time in
-- Redis: 26 µs, not 66; with parse_entry it would be 30. To compare transfer-32 with transfer-full-32:
-- go test -run '^$' -bench WaitQueue/transfer ./scripts
--
-- size is the number of fields of the wait queue. Reports whether the lock was transferred.
local function transfer_to_first(hash, owner, channel, queue_key, settings, size)
  local ok, done = pcall(function()
    local order = string.gsub(queue_key, 'queue', 'order', 1)
    -- Each entry has two members in the sorted set. The clients that do not listen come first, then the times at which
    -- entries expire, then the clients that listen. So if there are two members for each field, all fields are entries;
    -- and if all clients listen, the first of them is in the middle.
    local client = redis.call('ZCARD', order) == 2 * size and redis.call('ZRANGE', order, size, size)[1]
    local found = client and redis.call('HMGET', queue_key, client, (string.match(owner, '^[^:]*'))) or {}
    local _, seen, ttl, term, seq, mode, tokens, listens = string.match(found[1] or '', STORED_ENTRY)
    local open_time, every = string.match(settings, '^(%d+) 1 (%d+)$')
    if not seen or mode ~= '0' or tokens ~= '0' or listens ~= '1'
      or #client ~= 36 or #ttl > 13 or tonumber(ttl) > MAX_ENTRY_TTL
      or not open_time or found[2] then -- the client's own entry has to go too
      return false
    end
    local clock = redis.call('TIME')
    local now = clock[1] * 1000000 + clock[2]
    local is_over = math.abs(now - seen) >= ttl * 1000
    if is_over or every ~= '0' and now / 1000 % every < math.min(open_time, every / 100) then -- see end_turn
      return false
    end
    local turn = TURN_CHANNEL .. client
    local waiters = WAITERS_CHANNEL .. string.sub(queue_key, #WAIT_QUEUE_KEY + 1)
    local counts = redis.call('PUBSUB', NUMSUB, turn, channel, waiters) -- each behind its channel
    if counts[2] == 0 or counts[4] > counts[6] then -- the client has gone, or foreign clients wait
      return false
    end
    redis.call('ZREM', order, client, '-' .. client)
    redis.call('HDEL', queue_key, client)
    take(hash, ttl, client .. ':' .. term, '1')
    redis.call(PUBLISH, turn, term .. ' ' .. seq .. ' 0 ' .. hash)
    return true
  end)
  return ok and done
end
