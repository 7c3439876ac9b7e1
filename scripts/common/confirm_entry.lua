-- Common part of the scripts that take a plain or a fenced lock.

--- include common/foreign_hash.lua

-- Confirms the entry of a process whose try is refused, if nothing else has to be done. Does the same as
-- wait_queue_claim.lua, and leaves rarer cases and all errors to it. So a refused try takes 0.4 of the CPU time in
-- Redis: 25 µs, not 65; with parse_entry it would be 31. To compare refused-32 with refused-full-32:
-- go test -run '^$' -bench WaitQueue/refused ./scripts
--
-- Returns for how many ms the lock is held, and the holder; nil if the entry was not confirmed.
local function confirm_entry(hash, owner, count, key, entry)
  local ttl, term, _, _, _, listens = string.match(entry, ADDED_ENTRY)
  local ok, held_for, held_by = pcall(function()
    local holders = ttl and count == '1' and redis.call('HRANDFIELD', hash, 2) or {}
    if not holders[1] or holders[1] == owner then
      return nil
    end
    local client = string.match(owner, '^[^:]*')
    local found = redis.call('HMGET', key, client, 'open')
    local arrived, seen, old_ttl, old_term = string.match(found[1] or '', STORED_ENTRY)
    if not arrived or found[2] or tonumber(old_term) > tonumber(term) then
      return nil
    end
    local holder, clock = owner_in(check_lock(hash, holders)), redis.call('TIME')
    local now = clock[1] * 1000000 + clock[2]
    local order = string.gsub(key, 'queue', 'order', 1)
    local score = listens == '1' and arrived or arrived - 2 ^ 53 -- see wait_queue_entries.lua
    if math.abs(now - seen) >= old_ttl * 1000
      or redis.call('ZADD', order, 'XX', 'CH', -(now + ttl * 1000), '-' .. client) == 0 then
      return nil
    end
    redis.call('ZADD', order, score, client) -- also if it was lost
    local longest = math.max(ttl, redis.call('PTTL', key))
    redis.call('PEXPIRE', order, longest)
    redis.call('PEXPIRE', key, longest)
    redis.call('HSET', key, client, arrived .. ' ' .. string.format('%.0f', now) .. ' ' .. entry)
    return redis.call('PTTL', hash), holder
  end)
  if ok then
    return held_for, held_by
  end
end
