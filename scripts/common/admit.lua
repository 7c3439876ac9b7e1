-- Common part of the scripts that take a plain or a fenced lock.

--- include common/foreign_hash.lua
--- include common/wait_queue_entries.lua
--- include common/wait_queue.lua
--- include common/ask_holder.lua

-- Decides whether an owner may take a lock (count is 1), or set its hold count. Returns
--
--   whether the lock is free;
--   nil if the owner may; for how many ms it is refused; or -2: the lock is free, so there is nothing to re-enter;
--   the holder, if it is refused; "" if the free lock is left to foreign clients;
--   whether the wait queue was empty, if the owner may. The first process that joins it asks the holder for the lock
local function admit(hash, owner, count, key, settings, counter, entry, notified)
  local holders = redis.call('HRANDFIELD', hash, 2) -- a plain lock has one at most
  local holder = holders[1]
  local free, ours = not holder, holder == owner and #holders == 1
  if not free and not ours then
    holder = owner_in(check_lock(hash, holders))
  end
  if free and count ~= '1' then
    return free, -2, ''
  end
  local granted, rest = free or ours, nil -- rest: for how many ms the lock is left to foreign clients
  local size = size_of(key, not granted and owner, entry)
  local queue_was_empty = size == 0
  if size and (size > 0 or not granted and entry ~= '') then
    local queue = wait_queue(size, key, settings, plain_lock(hash, counter), owner)
    queue_was_empty = queue.number == 0
    if ours then
      queue.leave()
    else
      granted, rest = queue.claim(free, false, notified, entry)
    end
  end
  if granted then
    return free, nil, nil, queue_was_empty
  elseif rest then
    return free, rest, ''
  end
  if not free and (queue_was_empty or entry == '') and has_one_server(settings) then -- in a cluster no lock lingers
    ask_holder(hash, holder)
  end
  if free then -- another process in the wait queue has got the lock
    holder = redis.call('HRANDFIELD', hash)
  end
  return free, redis.call('PTTL', hash), holder
end
