-- The second part of acquire.lua, after foreign_hash.lua: confirms the entry of a process whose try is refused. Most tries of
-- processes that wait end here. It does the same as wait_queue_claim.lua in less than half the time, and leaves rarer cases
-- and all errors to it.
if count == '1' and entry ~= '' then
  local ok, refusal = pcall(function()
    local holders = redis.call('HRANDFIELD', hash, 2)
    if not holders[1] or holders[1] == owner then
      return nil
    end
    local client = string.match(owner, '^[^:]*')
    local found = redis.call('HMGET', queue_key, client, 'open')
    local arrived, seen, lasted, old_term, listened =
      string.match(found[1] or '', '^(%d+) (%d+) (%d+) (%d+) %d+ [01] %d+ ([01])$')
    local ttl, term, listens = string.match(entry, '^(%d+) (%d+) %d+ [01] %d+ ([01])$')
    if not arrived or not ttl or found[2] or listened ~= listens or tonumber(old_term) > tonumber(term) then
      return nil
    end
    local holder, clock = owner_in(check_lock(hash, holders)), redis.call('TIME')
    local now = clock[1] * 1000000 + clock[2]
    local order = string.gsub(queue_key, 'queue', 'order', 1)
    if math.abs(now - seen) >= lasted * 1000
      or redis.call('ZADD', order, 'XX', 'CH', -(now + ttl * 1000), '-' .. client) == 0 then
      return nil
    end
    local ends = math.max(ttl, redis.call('PTTL', queue_key))
    redis.call('PEXPIRE', order, ends)
    redis.call('PEXPIRE', queue_key, ends)
    redis.call('HSET', queue_key, client, arrived .. ' ' .. string.format('%.0f', now) .. ' ' .. entry)
    return {redis.call('PTTL', hash), holder}
  end)
  if ok and refusal then
    return refusal
  end
end
