-- The fifth part of the wait queue: a client asks for the lock, and gets an entry if it is refused. See
-- wait_queue_entries.lua.

--- include common/other_keys.lua
--- include common/wait_queue_entries.lua

-- Adds the claims to a queue that has transfers.
local function add_claims(queue)
  local now = queue.now

  -- Returns the term of an entry in ARGV.
  function queue.term(wanted)
    return tonumber(string.match(wanted, '^%d+ (%d+)'))
  end

  -- Returns the entry in ARGV as it is now, and its text; nil if it is malformed. old: the entry that it confirms.
  -- A new entry of a MultiLock counts from when the client began to wait: behind the "r" is for how long it has waited.
  -- reserved: as in the text of such an entry.
  local function parse_wanted(wanted, old, reserved)
    local core, waited = string.match(wanted, '^(.*) r(%d*)$')
    local arrived = old and old.arrived or string.format('%.0f', math.max(now - (tonumber(waited) or 0), 0))
    local text = arrived .. ' ' .. string.format('%.0f', now) .. ' ' .. (core and core .. ' ' .. reserved or wanted)
    return parse_entry(queue.client, text, now), text
  end

  -- Gives a MultiLock that has waited, and has no entry, the place of the time when it began, before it asks. So
  -- MultiLocks have the same order in all wait queues, and the first of them waits only for holders and for clients
  -- that have waited for longer.
  function queue.add_since(wanted)
    local entry = not queue.mine and string.find(wanted, ' r%d') and parse_wanted(wanted, nil, '0')
    if entry then
      entry.is_new = true
      queue.add(entry)
    end
  end

  -- Reports whether the client has an entry in Redis.
  function queue.has_entry()
    local mine = queue.mine
    return mine and not mine.gone and not mine.is_new
  end

  -- Adds an entry for the client, or confirms the one that it has; last: at a new place, usually the end. busy: the
  -- client wants several locks, and another is not free. A renewed reservation would keep this lock free in vain.
  function queue.enter(wanted, last, busy)
    local old = queue.mine and not queue.mine.gone and queue.mine
    if wanted == '' or old and tonumber(old.term) > queue.term(wanted) then
      return -- it does not wait, or this is a late command
    end
    old = not last and old
    local reserved = old and old.reserved or '0'
    local entry, text = parse_wanted(wanted, old, reserved == '-' and not busy and '0' or reserved)
    if entry then
      queue.set(queue.client, text, entry)
    end
  end

  -- Reports whether the client may take the free lock; shared: together with readers that get it before;
  -- outside: the client waits as a foreign client, if it has been refused before. If the lock is left to others, also
  -- returns for how many ms.
  function queue.may_take(shared, notified, outside)
    queue.ask()
    if queue.open and queue.open > now then
      if outside and queue.has_entry() then
        return true
      elseif notified ~= '1' then
        return false, math.ceil((queue.open - now) / 1000)
      end
      queue.open = nil
      call_if_here('HDEL', queue.key, 'open')
    end
    local first = queue.reserving()
    if first and tonumber(first.reserved) > 0 and now >= queue.reserved_until(first) then
      queue.reserve(first, '-') -- the holder of another lock of that MultiLock may wait for this one
    end
    -- The mode of the transfer; nil if the first entry does not get the lock now; false if no other entry is ahead.
    local transferred = queue.ahead() and queue.transfer_found()
    first = transferred == nil and queue.reserving()
    if first then
      return false, math.max(math.ceil((queue.reserved_until(first) - now) / 1000), 1)
    end
    return not transferred or shared and transferred == '1' and not queue.ahead(true)
  end

  -- Reports whether the client may join the readers that hold the lock. If so, the script transfers the
  -- lock to the readers before and behind it too.
  function queue.may_join()
    queue.ask()
    return not queue.ahead(true)
  end

  -- Decides whether the client may take a lock that it does not hold. free: the lock is free. joins: the
  -- client wants to share it; if it is not free, with the readers that hold it. notified: "1" if the client
  -- was notified of a release since it was last refused. Reports whether the client may; if not, adds the entry,
  -- and also returns for how many ms the free lock is left to others.
  function queue.claim(free, joins, notified, entry)
    queue.add_since(entry)
    local may, rest
    if free then
      may, rest = queue.may_take(joins, notified, string.match(entry, ' 0$'))
    else
      may = joins and queue.may_join()
    end
    if queue.open and not rest and not (free and may) then
      queue.open = nil -- a foreign client has had the lock
      call_if_here('HDEL', queue.key, 'open')
    end
    if may then
      queue.leave()
      return true
    end
    if joins and not free then
      queue.transfer_unblocked()
    end
    queue.enter(entry)
    return false, rest
  end
end
