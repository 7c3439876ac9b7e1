-- The fourth part of the wait queue: which client is the first, and how it gets the lock. See wait_queue_entries.lua.

--- include common/foreign_hash.lua
--- include common/other_keys.lua
--- include common/tokens.lua
--- include common/wait_queue_entries.lua
--- include common/wait_queue_read.lua

-- For how many µs a free lock is reserved for a MultiLock at most.
local MAX_RESERVED = 60000000

-- Adds the transfers to a queue that has an order.
local function add_transfers(queue, key, lock)
  local now, hash = queue.now, lock.hash
  queue.channel = lock.channel .. of_lock(key)
  queue.sees_subscribers = SHARDED or queue.one_server -- whether this server has all subscribers of the lock's channels

  -- Reports whether an entry counts, and removes it if its client no longer listens. An entry that does not listen yet
  -- gets no transfer, and keeps no client waiting.
  local function check_or_remove(entry)
    if queue.asks(entry) or entry.reserved then
      return queue.asks(entry) or entry.reserved ~= '-'
    elseif entry.listens and not entry.reachable and queue.sees_subscribers then
      entry.reachable = redis.call('PUBSUB', NUMSUB, turn_channel(key, entry))[2] > 0
      if not entry.reachable then
        queue.remove(entry)
      end
      return entry.reachable
    end
    return entry.listens
  end

  -- Returns the first entry from the i-th on that counts, and its index.
  function queue.from(i)
    local entry = queue.entry_at(i)
    while entry and (entry.gone or not check_or_remove(entry)) do
      i = i + 1
      entry = queue.entry_at(i)
    end
    return entry, i
  end

  -- Reports whether no entry that counts is before the client's own.
  function queue.is_first()
    local i, entry = 1, queue.entry_at(1)
    while entry and is_before(entry, queue.mine) do
      if not entry.gone and check_or_remove(entry) then
        return false
      end
      i = i + 1
      entry = queue.entry_at(i)
    end
    return true
  end

  -- Reports whether another entry is before the entry of the client that asks; exclusive: an entry that does not share.
  function queue.ahead(exclusive)
    local entry, i = queue.from(1)
    while entry and not queue.asks(entry) do
      if entry.mode == '0' or not exclusive then
        return true
      end
      entry, i = queue.from(i + 1)
    end
    return false
  end

  -- Returns the first entry if it belongs to a MultiLock that does not ask.
  function queue.reserving()
    local entry = queue.from(1)
    return entry and not queue.asks(entry) and entry.reserved and entry
  end
  function queue.reserved_until(entry)
    return entry.reserved + math.min(entry.ttl * 500, MAX_RESERVED)
  end
  function queue.reserve(entry, since)
    entry.reserved = since
    queue.set(entry.client, entry.text .. ' ' .. since)
    if since == '-' then
      call_if_here('ZREM', queue.order, entry.client)
    end
  end

  local foreign -- whether the hash that readers seem to hold is another application's; nil if that was not checked

  -- Makes a waiter the owner. Returns false while the slot is being moved: the hash cannot be created again on the
  -- old server, and the counter may be on the other. Also returns false if another application has put something
  -- into the hash.
  local function transfer_to(entry, joins)
    if not joins then
      if not queue.all_here() or call_if_here('EXISTS', hash) == 1 then
        return false
      end
      foreign = false -- this script makes the hash
    elseif foreign == nil then
      local ok, problem = pcall(check_lock, hash)
      foreign = not ok
      if not ok and not string.find(words_of(problem), '^WRONGTYPE') then
        error(problem, 0)
      end
    end
    if foreign then
      return false
    end
    local token = 0
    if entry.tokens ~= '0' and lock.counter ~= '' then
      -- Without a token, the waiter draws one itself, and gets the error of the counter.
      token = try_draw(lock.counter, tonumber(entry.tokens), 0) or 0
      if token > 0 then
        redis.call('PERSIST', lock.counter)
      end
    end
    queue.remove(entry)
    lock.give(entry.client .. ':' .. entry.term, entry.mode, entry.ttl, joins)
    -- The hash is not formatted with %s, which would end at a NUL byte.
    local message = entry.term .. ' ' .. entry.seq .. ' ' .. string.format('%.0f', token) .. ' ' .. hash
    redis.call(PUBLISH, turn_channel(key, entry), message)
    return true
  end

  -- Transfers the lock to the first entry, or to all readers before the first that does not share. joins:
  -- readers hold the lock. asks: the client asks for the lock, and gets it from the script itself. begins: reading
  -- begins with this script. MultiLocks that could not join readers before, and can now, are woken. Returns the mode in
  -- which the lock is held then, nil if it was not transferred; and whether it is reserved for a MultiLock from now on.
  function queue.transfer_next(joins, asks, begins)
    local transferred -- the mode of the transfer
    local wakes_readers -- whether MultiLocks that read are woken
    if asks then
      queue.ask()
    end
    local entry, i = queue.from(1)
    while entry do
      local are_readers, asking = joins or transferred, queue.asks(entry)
      if entry.reserved then
        if entry.mode == '0' or not are_readers then
          break
        end
        local unblocked = queue.vacated and is_before(queue.vacated, entry)
        wakes_readers = wakes_readers or not asking and (begins or not joins or unblocked)
      elseif entry.mode == '0' and entry.listens and (asking or are_readers) then
        break
      elseif not asking then
        if not transfer_to(entry, are_readers) then
          break
        end
        transferred = entry.mode
      end
      if transferred == '0' then
        break
      end
      entry, i = queue.from(i + 1)
    end
    if wakes_readers then
      -- This wakes all processes that wait, so it does not happen with each reader that joins others.
      redis.call(PUBLISH, queue.channel, '0')
    end
    local first = not joins and not transferred and queue.reserving()
    local begins_to_reserve = first and first.reserved == '0'
    if begins_to_reserve then
      queue.reserve(first, string.format('%.0f', now))
    end
    return transferred, begins_to_reserve
  end

  -- Transfers a lock that was found free: its hold has expired, or its key was deleted. If the lock is reserved for a
  -- MultiLock from now on, wakes that: it does not know that the lock is free. Returns the mode as transfer_next does.
  function queue.transfer_found()
    local transferred, begins_to_reserve = queue.transfer_next()
    if begins_to_reserve then
      redis.call(PUBLISH, queue.channel, '0')
    end
    return transferred
  end

  -- Reports whether the lock is free, and not left to foreign clients.
  local function is_free()
    return not (queue.open and queue.open > now) and redis.call('EXISTS', hash) == 0
  end

  -- Transfers the lock if it is free and not left to others. If no client gets it, that is published.
  function queue.transfer_free()
    if is_free() and not queue.transfer_next() then
      redis.call(PUBLISH, queue.channel, '0')
    end
  end

  -- Transfers the lock if it is free: the hold of the client has ended before this command.
  function queue.transfer_expired()
    if is_free() then
      queue.transfer_found()
    end
  end

  -- If a writer that has gone kept others from joining the readers that hold the lock, lets them join, and returns
  -- true.
  function queue.transfer_unblocked()
    if queue.vacated then
      queue.transfer_next(true)
      return true
    end
  end
end
