-- Common part of the scripts that read the queue of a fair lock.
--
-- The queue is Redisson's: a list of owners, and a sorted set with their timeouts. An owner's timeout is its deadline:
-- when it counts as dead, epoch ms.

--- include common/foreign_hash.lua

-- How many entries a queue may have: to read more would block Redis for long. Waiters join no full queue.
local MAX_ENTRIES = 10000

-- For how many ms a waiter may count as alive: a year.
local MAX_WAIT = 31536000000

-- Fails if one of these entries of a queue, or every second one, is not an owner.
local function check_entries(entries, step)
  for i = 1, #entries, step or 1 do
    if not is_owner(entries[i]) then
      refuse_foreign('the queue of the lock has entries that are not owners')
    end
  end
end

-- Reads the first n entries of a queue, or of its timeouts, and checks some of them. The first is read before the
-- others: entries of another application may be large. range is the command that reads, and run runs it. With
-- "WITHSCORES", each entry has its deadline behind it.
local function read_checked(range, run, key, n, ...)
  if n > 1 then
    check_entries(run(range, key, 0, 0) or {})
  end
  if n > MAX_SEEN then
    check_entries(run(range, key, 0, MAX_SEEN - 1) or {})
  end
  local entries = run(range, key, 0, n - 1, ...) or {}
  if n <= MAX_SEEN then
    check_entries(entries, 1 + select('#', ...))
  end
  return entries
end

-- Returns the owners in a queue, in their order, and the deadlines by owner, at most a year from now. Fails if there
-- are more entries than may be read, or if one is not an owner. All that count as dead are checked, since those are
-- deleted.
local function read_queue(queue, timeouts, now)
  local n = math.max(redis.call('LLEN', queue), redis.call('ZCARD', timeouts))
  if n > MAX_ENTRIES then
    refuse_foreign('the queue of the lock has ' .. n .. ' entries, more than ' .. MAX_ENTRIES)
  end
  local waiters = read_checked('LRANGE', redis.call, queue, n)
  local timed = read_checked('ZRANGE', redis.call, timeouts, n, 'WITHSCORES')
  local deadlines, is_waiter = {}, {}
  for i = 1, #timed, 2 do
    deadlines[timed[i]] = math.min(tonumber(timed[i + 1]), now + MAX_WAIT) -- it may be infinite
  end
  for _, waiter in ipairs(waiters) do
    is_waiter[waiter] = true
    if not deadlines[waiter] or deadlines[waiter] <= now then
      check_entries({waiter})
    end
  end
  for owner in pairs(deadlines) do
    if not is_waiter[owner] then
      check_entries({owner})
    end
  end
  return waiters, deadlines
end
