-- Common part of the scripts that take a plain or a fenced lock; it is put before each of them,
-- behind wait_queue.lua.

-- Makes a waiter the only owner of a free lock.
local function give_to(hash)
  return function(owner, _, ttl)
    take(hash, ttl, owner, '1')
  end
end

-- Decides whether an owner may take a lock (count is 1), or set its hold count. Returns whether the
-- lock is free and, if the owner may not, for how long the lock is another's, and whose; if that
-- is nobody, then it is left to clients outside the line, or (-2) there is nothing to re-enter.
local function admit(hash, owner, count, key, settings, counter, place, heard)
  local holders = redis.call('HRANDFIELD', hash, 2) -- there is one at most, or it is no plain lock
  local holder = holders[1]
  local free, ours = not holder, holder == owner and #holders == 1
  if not free and not ours then
    holder = owner_in(check_lock(hash, holders))
  end
  if free and count ~= '1' then
    return free, -2, ''
  end
  local granted, rest = free or ours, nil
  local fields = entries_of(key)
  if fields and (fields[1] or not granted and place ~= '') then
    local line = line_of(fields, key, settings, hash, owner, counter, give_to(hash))
    if ours then
      line.leave()
    else
      granted, rest = line.claim(free, false, heard, place)
    end
  end
  if granted then
    return free
  elseif rest then
    return free, rest, ''
  end
  return free, redis.call('PTTL', hash), free and redis.call('HRANDFIELD', hash) or holder
end
