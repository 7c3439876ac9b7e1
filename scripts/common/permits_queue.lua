-- Common part of the scripts of the semaphore, after the wait queue: the processes that wait for permits.
--
-- An entry wants as many permits as the first waiter of its process, the field <tokens>; its <mode> is "0". No permits
-- are transferred, since they have no lease: a process that died would take them with it. Entries only say which
-- processes to wake, and which permits to leave to them: the free permits are for the first entries, as far as they
-- suffice. So each release wakes as many processes as it serves, and each process gets its turn.

-- How many processes a script wakes at most. Others find out by themselves.
local MAX_WOKEN = 1000

-- Opens the wait queue of a semaphore; returns nil if it is empty, and the client adds no entry. number is that of the
-- client's command, channel that of the permits.
local function open_queue(semaphore, key, settings, client, number, channel, entry)
  local size = size_of(key)
  if not size or size == 0 and entry == '' then
    return nil
  end
  local queue = wait_queue(size, key, settings, semaphore, client .. ':' .. number, '')
  queue.channel = channel

  -- Returns how many of the free permits are left to processes that have waited for longer.
  function queue.reserved(free)
    queue.ask()
    local sum = 0
    local other, i = queue.from(1)
    while other and not queue.asks(other) and sum < free do
      sum = sum + math.max(other.tokens, 1)
      other, i = queue.from(i + 1)
    end
    return math.min(sum, free)
  end

  -- Wakes the processes for which the free permits suffice now. When there were fewer, others were woken, unless an entry
  -- before them has gone since.
  function queue.wake_up(before, free)
    local sum, woken = 0, 0
    local other, i = queue.from(1)
    while other and sum < free and woken < MAX_WOKEN do
      sum = sum + math.max(other.tokens, 1)
      if sum <= free and (sum > before or queue.dropped) then
        queue.wake(other)
        woken = woken + 1
      end
      other, i = queue.from(i + 1)
    end
  end

  return queue
end
