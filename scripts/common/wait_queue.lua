-- The last part of the wait queue: a client leaves it, or releases the lock. See wait_queue_entries.lua.

--- include common/take.lua
--- include common/other_keys.lua
--- include common/wait_queue_entries.lua
--- include common/wait_queue_read.lua
--- include common/wait_queue_order.lua
--- include common/wait_queue_transfer.lua
--- include common/wait_queue_claim.lua

-- Returns the number of fields of a wait queue, or nil if it is not here; see other_keys.lua. refused: an owner that
-- cannot get the lock, since another one holds it; entry is what it adds. If it adds none, and nothing is to be
-- removed, 0 is returned: the wait queue need not be opened.
local function size_of(key, refused, entry)
  local n = call_if_here('HLEN', key)
  if n and n > 0 and refused and entry == '' then
    local values = call_if_here('HMGET', key, string.match(refused, '^[^:]*'), 'open')
    if not values then
      return nil
    elseif not values[1] and not values[2] then
      return 0
    end
  end
  return n
end

-- Returns what wait_queue needs of a plain or fenced lock. counter is the key of its token counter, "" without one.
local function plain_lock(hash, counter)
  local function give(owner, _, ttl)
    take(hash, ttl, owner, '1')
  end
  return {hash = hash, channel = LOCK_CHANNEL, counter = counter, give = give}
end

-- Opens a wait queue. size is the result of size_of, and owner the owner that the command is about. lock.give(owner,
-- mode, ttl, joins) makes a waiter the owner of the lock, which is free, or, with joins, held by readers.
local function wait_queue(size, key, settings, lock, owner)
  local client, number = string.match(owner, '^([^:]*):?(%d*)')
  local queue = read_entries(size, key, settings, lock.hash, client)
  local were_some = queue.number > 0
  add_order(queue)
  add_transfers(queue, key, lock)
  add_claims(queue)

  -- Removes the client's entry, unless it waits under a later term. Reports whether it has.
  function queue.leave(term)
    local mine = queue.mine
    if not mine or mine.gone or tonumber(mine.term) > tonumber(term or number) then
      return false
    end
    queue.remove(mine)
    return true
  end

  -- Removes the client's entry, and transfers the lock to clients that it has kept waiting. joins: readers hold the
  -- lock, and a writer that leaves has kept the clients behind it from joining them. A client behind others has kept
  -- no client waiting for the free lock. Reports whether there was an entry.
  function queue.leave_and_transfer(joins)
    local first = not joins and queue.mine and queue.is_first()
    local left = queue.leave()
    if joins and left then
      queue.transfer_next(true)
    elseif joins then
      queue.transfer_unblocked()
    elseif first and left then
      queue.transfer_free()
    end
    return left
  end

  -- Removes the entry of a client that stops waiting, or whose hold has expired before its release came: nothing else
  -- transfers the free lock.
  function queue.withdraw(joins)
    if not queue.leave_and_transfer(joins) and not joins and were_some then
      queue.transfer_free()
    end
  end

  -- Returns the number of entries of other clients that listen or reserve, and the number of foreign clients that wait:
  -- entries that do not listen, and subscribers of the lock's channel that do not use the queue. Checks that the first
  -- entry still listens. Sets seen to the number of those subscribers.
  function queue.others()
    local mine = queue.mine
    local entry, i = queue.from(1)
    while entry and entry == mine do
      entry, i = queue.from(i + 1)
    end
    local number, foreign = queue.number, 0
    local length = number > 0 and call_if_here('ZCOUNT', queue.order, 0, '+inf') or 0
    if length < number then
      foreign = call_if_here('ZCOUNT', queue.order, '-inf', -HALF) or 0
    end
    if mine and not mine.gone and not mine.is_new then
      if is_ordered(mine) then
        length = length - 1
      elseif not mine.reserved then
        foreign = foreign - 1
      end
    end
    queue.seen = queue.sees_subscribers and foreign_subscribers(key, queue.channel) or 0
    return length, foreign + queue.seen
  end

  -- Ends the turn of the client, which has just released the lock. Transfers the lock, or leaves it to foreign clients:
  -- in proportion, or if that is forced, or at the beginning of every period, since some of them cannot be seen. length
  -- and foreign are the results of others. yields: the holder wants the lock again. If it does not, and no entry is in
  -- the queue, its next request may come before foreign clients have woken: so the lock is left to the foreign clients
  -- that are seen. Reports whether the lock was transferred, and whether it is left to foreign clients.
  function queue.end_turn(length, foreign, yields, forced)
    local now, every = queue.now, queue.every
    local period_begins = length > 0 and every > 0 and now / 1000 % every < math.min(queue.open_time, every / 100)
    local others_wait = foreign > 0 and (length > 0 or yields or queue.seen > 0)
    if forced or period_begins or others_wait and queue.turns * foreign >= length then
      queue.open = now + queue.open_time * 1000
      queue.set('open', string.format('%.0f', queue.open))
      if queue.turns > 0 then
        call_if_here('HDEL', queue.key, 'turns')
      end
      return false, true
    elseif length > 0 and foreign > 0 then
      queue.turns = queue.turns + 1
      queue.set('turns', string.format('%.0f', queue.turns))
    end
    return queue.transfer_next() ~= nil, false
  end

  return queue
end
