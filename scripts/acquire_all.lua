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
local now = epoch_ms()

local locks = {}
for i = 1, #KEYS / 3 do
  local lock = {
    hash = KEYS[3 * i - 2], field = owner,
    kind = ARGV[4 + 3 * i], prefix = ARGV[5 + 3 * i], queue_key = ARGV[6 + 3 * i],
    queue = nil, -- the wait queue, once it is open
  }
  lock.is_plain = lock.kind == 'plain' or lock.kind == 'fenced'
  if lock.kind == 'fenced' then
    lock.counter = KEYS[3 * i - 1]
  elseif lock.kind == 'fair' then
    lock.fair_queue, lock.timeouts = KEYS[3 * i - 1], KEYS[3 * i]
  elseif lock.kind == 'write' then
    lock.field = owner .. ':write'
  end
  locks[i] = lock
end

-- Returns in how many ms the first live waiter of a fair lock's queue counts as dead, nil without one.
local function first_deadline(queue, timeouts)
  if redis.call('EXISTS', queue, timeouts) == 0 then
    return nil
  end
  local waiters, deadlines = read_queue(queue, timeouts, now)
  for _, waiter in ipairs(waiters) do
    if deadlines[waiter] and deadlines[waiter] > now then
      return deadlines[waiter] - now
    end
  end
end

-- Opens the wait queue of a lock. An empty one is opened only with must.
local function open(lock, must)
  local size = not lock.queue and lock.kind ~= 'fair' and size_of(lock.queue_key)
  if size and (must or size > 0) then
    local of_kind = lock.is_plain and plain_lock or read_write_lock
    lock.queue = wait_queue(size, lock.queue_key, settings, of_kind(lock.hash, lock.prefix), owner)
    lock.queue.add_since(entry_for(lock.kind, entry))
  end
  return lock.queue
end

-- Finds out which locks other owners hold, and returns how many.
local function count_busy()
  local busy = 0
  for _, lock in ipairs(locks) do
    lock.is_busy = redis.call('EXISTS', lock.hash) == 1 and redis.call('HEXISTS', lock.hash, lock.field) == 0
    if lock.is_busy then
      lock.holder = owner_in(check_lock(lock.hash))
      busy = busy + 1
    end
  end
  return busy
end

-- Opens the wait queues to which the client adds its entry, and reports whether it has one in all of them.
local function has_all_entries()
  local all = true
  if entry ~= '' then
    for _, lock in ipairs(locks) do
      local queue = open(lock, true)
      all = all and (not queue or queue.has_entry())
    end
  end
  return all
end

-- Refuses because of the i-th lock, and adds the entry to all wait queues. A client without an entry in one of them
-- gets a new place in all: in different orders, two clients would wait for each other. The locks for which the client
-- has kept others waiting go to them.
local function refuse(i, ttl, other)
  local busy, has_all = count_busy(), has_all_entries()
  for _, lock in ipairs(locks) do
    if lock.is_busy and lock.is_plain and has_one_server(settings) and (entry == '' or lock.queue.number == 0) then
      ask_holder(lock.hash, lock.holder)
    end
    if lock.queue then
      local is_read_write = lock.kind == 'read' or lock.kind == 'write'
      local is_read = lock.is_busy and is_read_write and value_of(lock.hash, 'mode') == 'read'
      if not has_all and lock.queue.has_entry() then
        lock.queue.leave_and_transfer(is_read)
      elseif is_read then
        lock.queue.transfer_unblocked()
      end
      local others_busy = busy > (lock.is_busy and 1 or 0)
      lock.queue.enter(entry_for(lock.kind, entry), not has_all, others_busy)
    end
  end
  return {REFUSED, ttl, other, tostring(i)}
end

-- Refuses because another owner holds the i-th lock. fields is the result of check_lock, if that is known.
local function refuse_held(i, fields)
  local hash = locks[i].hash
  local other = owner_in(fields or check_lock(hash))
  return refuse(i, redis.call('PTTL', hash), other)
end

-- Returns the reply if the owner may not take the i-th lock, else nil. Takes nothing. Fails if a key is of another
-- type.
local function try(i, lock)
  local queue = open(lock)
  lock.is_free = redis.call('PTTL', lock.hash) == -2
  if lock.is_free and lock.kind == 'fair' then
    local ttl = first_deadline(lock.fair_queue, lock.timeouts)
    if ttl then
      return refuse(i, ttl, '')
    end
    lock.fair_queue_is_dead = true -- all its waiters are dead, and have the form of owners
  elseif lock.is_free and queue then
    local may, rest = queue.may_take(lock.kind == 'read', notified)
    if rest then
      return refuse(i, rest, '')
    elseif not may then
      return refuse_held(i)
    end
    lock.is_free = redis.call('EXISTS', lock.hash) == 0 -- other readers may have got it
  elseif not lock.is_free and redis.call('HEXISTS', lock.hash, lock.field) == 0 then
    local fields = check_lock(lock.hash)
    local shared = lock.kind == 'read' and value_of(lock.hash, 'mode') == 'read'
    if not shared or queue and not queue.may_join() then
      return refuse_held(i, fields)
    end
  end
end

-- Draws the tokens of all fenced locks. Returns the last token of each.
local function draw_all()
  local number, known = string.match(wanted, '^(%d+)(.*)$')
  local above, tokens = {}, {}
  for token in string.gmatch(known, '%d+') do
    above[#above + 1] = token
  end
  for _, lock in ipairs(locks) do
    if lock.counter then
      tokens[#tokens + 1] = string.format('%.0f', draw_tokens(lock.counter, number, above[#tokens + 1]))
      redis.call('PERSIST', lock.counter)
    end
  end
  return tokens
end

-- Takes a lock that the owner may take.
local function take_one(lock)
  local fields = {lock.field, '1'}
  if lock.queue then
    lock.queue.leave()
  end
  if lock.fair_queue_is_dead then
    redis.call('DEL', lock.fair_queue, lock.timeouts)
  elseif lock.is_free and (lock.kind == 'read' or lock.kind == 'write') then
    fields[3], fields[4] = 'mode', lock.kind
  end
  if lock.kind == 'read' then
    redis.call('SET', lease_key(lock.prefix, owner, 1), '1', 'PX', lease)
  end
  if lock.is_free then
    take(lock.hash, lease, unpack(fields))
  else
    local left = lock.kind == 'read' and redis.call('PTTL', lock.hash) or 0
    redis.call('PEXPIRE', lock.hash, math.max(left, lease)) -- others may read under a longer one
    redis.call('HSET', lock.hash, unpack(fields))
  end
  if lock.queue and lock.kind == 'read' then
    lock.queue.transfer_next(true, false, lock.is_free)
  end
end

for i, lock in ipairs(locks) do
  local refusal = try(i, lock)
  if refusal then
    return refusal
  end
end
local tokens = draw_all() -- before all locks: if a counter is refused, nothing is taken
for _, lock in ipairs(locks) do
  take_one(lock)
end
return {GRANTED, 0, table.concat(tokens, ','), ''}
