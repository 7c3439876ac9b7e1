-- Takes several locks for one owner, each with hold count 1: all or none.
--
-- KEYS[3i-2], KEYS[3i-1], KEYS[3i]
--          of the i-th lock, by its kind
--            plain, read, write  hash, hash, hash
--            fenced              hash, counter of tokens, hash
--            fair                hash, queue, timeouts
--          These must be KEYS: locks that one script takes must be on one server
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  lease, ms
-- ARGV[3]  how many tokens to draw of each fenced lock; then optionally, after a "+" for each of them
--          in order, the number that they must exceed: "5+9+12"
-- ARGV[4]  the settings of the wait queues
-- ARGV[5]  the entry that the client adds to all wait queues if it is refused, or ""
-- ARGV[6]  "1": the client was notified of a release since it was last refused
-- ARGV[4+3i], ARGV[5+3i], ARGV[6+3i]
--          the kind of the i-th lock; the prefix of the keys of its read leases for a read/write
--          lock, or the key of its token counter; and the key of its wait queue
--
-- Reply: {GRANTED, 0, tokens, ""}      the owner holds all; the lease starts now. tokens lists the
--                                      last token drawn of each fenced lock, in order: "5,9"
--        {REFUSED, ttl, other, index}  other holds the lock of that index, from 1, for ttl more ms
--                                      (-1: no TTL). If the lock is free but its queue has a live
--                                      waiter, other is "", and the first of these counts as dead
--                                      in ttl ms. Or the lock is left to foreign clients, or to the
--                                      first client in its wait queue, for ttl ms

--- include common/clock.lua
--- include common/take.lua
--- include common/foreign_hash.lua
--- include common/hash_values.lua
--- include common/fair_queue.lua
--- include common/tokens.lua
--- include common/wait_queue_entries.lua
--- include common/wait_queue.lua
--- include common/ask_holder.lua
--- include common/read_write.lua

local owner, lease, wanted, settings, entry, notified = unpack(ARGV, 1, 6)
lease = tonumber(lease)
local tokens = {}
local now = epoch_ms()

-- Returns in how many ms the first live waiter of a fair lock's queue counts as dead, nil without one.
local function queued(queue, timeouts)
  if redis.call('EXISTS', queue, timeouts) == 0 then
    return
  end
  local waiters, scores = read_queue(queue, timeouts, now)
  for _, waiter in ipairs(waiters) do
    if scores[waiter] and scores[waiter] > now then
      return scores[waiter] - now
    end
  end
end

local locks = {}
for i = 1, #KEYS / 3 do
  local lock = {
    hash = KEYS[3 * i - 2], second = KEYS[3 * i - 1], third = KEYS[3 * i],
    kind = ARGV[4 + 3 * i], prefix = ARGV[5 + 3 * i], key = ARGV[6 + 3 * i], field = owner,
  }
  locks[i] = lock
  if lock.kind == 'write' then
    lock.field = owner .. ':write'
  end
end

-- Opens the wait queue of a lock. An empty one is opened only with must.
local function open(lock, must)
  local size = not lock.queue and lock.kind ~= 'fair' and size_of(lock.key)
  if size and (must or size > 0) then
    local of_kind = (lock.kind == 'plain' or lock.kind == 'fenced') and plain_lock or read_write_lock
    lock.queue = wait_queue(size, lock.key, settings, of_kind(lock.hash, lock.prefix), owner)
    lock.queue.add_since(entry_for(lock.kind, entry))
  end
  return lock.queue
end

-- Refuses because of the i-th lock, and adds the entry to all wait queues. A client without an entry in one
-- of them gets a new place in all: in different orders, two clients would wait for each other. The locks for which
-- the client has kept others waiting go to them.
local function refuse(i, ttl, other)
  local whole, busy = true, 0
  for _, lock in ipairs(locks) do
    lock.busy = redis.call('EXISTS', lock.hash) == 1 and redis.call('HEXISTS', lock.hash, lock.field) == 0
    if lock.busy then
      lock.holder = owner_in(check_lock(lock.hash))
    end
    busy = busy + (lock.busy and 1 or 0)
  end
  for _, lock in ipairs(entry ~= '' and locks or {}) do
    local queue = open(lock, true)
    whole = whole and (not queue or queue.has_entry())
  end
  for _, lock in ipairs(locks) do
    local is_plain = lock.kind == 'plain' or lock.kind == 'fenced'
    if lock.busy and is_plain and has_one_server(settings) and (entry == '' or lock.queue.number == 0) then
      ask_holder(lock.hash, lock.holder)
    end
    if lock.queue then
      local shares = lock.kind == 'read' or lock.kind == 'write'
      local joins = lock.busy and shares and value_of(lock.hash, 'mode') == 'read'
      if not whole and lock.queue.has_entry() then
        lock.queue.leave_and_transfer(joins)
      elseif joins then
        lock.queue.transfer_unblocked()
      end
      lock.queue.enter(entry_for(lock.kind, entry), not whole, busy > (lock.busy and 1 or 0))
    end
  end
  return {REFUSED, ttl, other, tostring(i)}
end

local function held(i, lock, fields)
  local other = owner_in(fields or check_lock(lock.hash))
  return refuse(i, redis.call('PTTL', lock.hash), other)
end

-- The first pass takes nothing. It also fails if a key is of another type.
for i, lock in ipairs(locks) do
  local queue = open(lock)
  lock.free = redis.call('PTTL', lock.hash) == -2
  if lock.free then
    if lock.kind == 'fair' then
      local alive = queued(lock.second, lock.third)
      if alive then
        return refuse(i, alive, '')
      end
      lock.fair_queue_is_dead = true -- all its waiters are dead, and have the form of owners
    elseif queue then
      local may, rest = queue.may_take(lock.kind == 'read', notified)
      if rest then
        return refuse(i, rest, '')
      elseif not may then
        return held(i, lock)
      end
      lock.free = redis.call('EXISTS', lock.hash) == 0
    end
  elseif redis.call('HEXISTS', lock.hash, lock.field) == 0 then
    local fields = check_lock(lock.hash)
    local shared = lock.kind == 'read' and value_of(lock.hash, 'mode') == 'read'
    if not shared or queue and not queue.may_join() then
      return held(i, lock, fields)
    end
  end
end

-- The second pass takes all. Tokens come first: if a counter is refused, nothing is taken.
local n, known = string.match(wanted, '^(%d+)(.*)$')
local above = {}
for number in string.gmatch(known, '%d+') do
  above[#above + 1] = number
end
for _, lock in ipairs(locks) do
  if lock.kind == 'fenced' then
    tokens[#tokens + 1] = string.format('%.0f', draw_tokens(lock.second, n, above[#tokens + 1]))
    redis.call('PERSIST', lock.second)
  end
end
for _, lock in ipairs(locks) do
  local fields = {lock.field, '1'}
  if lock.queue then
    lock.queue.leave()
  end
  if lock.fair_queue_is_dead then
    redis.call('DEL', lock.second, lock.third)
  elseif lock.free and (lock.kind == 'read' or lock.kind == 'write') then
    fields[3], fields[4] = 'mode', lock.kind
  end
  if lock.kind == 'read' then
    redis.call('SET', lease_key(lock.prefix, owner, 1), '1', 'PX', lease)
  end
  if lock.free then
    take(lock.hash, lease, unpack(fields))
  else
    local left = lock.kind == 'read' and redis.call('PTTL', lock.hash) or 0
    redis.call('PEXPIRE', lock.hash, math.max(left, lease)) -- others may read under a longer one
    redis.call('HSET', lock.hash, unpack(fields))
  end
  if lock.queue and lock.kind == 'read' then
    lock.queue.transfer_next(true, false, lock.free)
  end
end
return {GRANTED, 0, table.concat(tokens, ','), ''}
