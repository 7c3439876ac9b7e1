-- Synchronises the queue of a fair lock with the waiters of one client, and takes the lock for one of them if it is
-- next.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the client's uuid
-- ARGV[2]  an owner of the client that releases the lock, or ""
-- ARGV[3]  "1": the lock may be taken; otherwise only the queue is updated. An owner: waiters join the queue only while
--          it holds the lock. Otherwise the command is late: the client has released the lock since, and the waiters
--          may have left
-- ARGV[4]  the client's owners up to this number leave the queue, unless they are listed
-- ARGV[5]  the waiter timeout, ms: how long a waiter counts as alive after the last update by its client
-- ARGV[6]  its queue, a list of owners
-- ARGV[7]  its timeouts, a sorted set: owner -> its deadline, when it counts as dead, epoch ms
-- ARGV[8]  the prefix of its channels; each waiter listens on its own, ARGV[8]:owner. A MultiLock, which is in no
--          queue, listens on ARGV[8] for a lock that is free and has nothing in its queue
-- ARGV[6+3i], ARGV[7+3i], ARGV[8+3i]
--          the i-th listed owner; its lease in ms; and "1" if it waits in the queue, which it joins only while that is
--          not full; "0" tries once, and gets the lock only if it is free and the queue is empty
--
-- Reply: {GRANTED, 0, owner, freed}     this owner of the client holds the lock
--        {REFUSED, ttl, holder, freed}  no owner of the client does. If the lock is held, holder has it for ttl more ms
--                                       (-1: no TTL). If it is free, holder is "", and the first waiter, of another
--                                       client, counts as dead in ttl ms; 0 if there is none
--        {REFUSED, 1, "", freed}        the hash or the queue is another application's; the next command fails
--        freed is "1" if ARGV[2] held the lock, "0" if not, and "" without ARGV[2]
--
-- While a cluster moves the slot, the queue may be on the other server. The script then ignores it: the lock is
-- released, and taken if it is free, even if others wait.

--- include common/clock.lua
--- include common/take.lua
--- include common/other_keys.lua
--- include common/foreign_hash.lua
--- include common/fair_queue.lua

local uuid, releases, how, up_to, waiter_timeout, queue_key, timeouts_key, channel = unpack(ARGV, 1, 8)

local FIRST = 9 -- the index of the first listed owner
local client = {
  uuid = uuid, prefix = uuid .. ':', up_to = tonumber(up_to), timeout = tonumber(waiter_timeout),
  leases = {}, -- of the listed owners, except for one that holds the lock
}
for i = FIRST, #ARGV, 3 do
  client.leases[ARGV[i]] = tonumber(ARGV[i + 1])
end

local lock = {
  hash = KEYS[1], channel = channel,
  is_ours = nil,      -- whether neither the hash nor the queue is another application's
  fields = nil,       -- two fields of the hash; nil: it is on the other server
  holder = nil,       -- the owner in them; false: the lock is free; nil: as above
  left = nil,         -- for how many ms the holder has the lock
  freed = '',         -- as in the reply
  may_be_taken = nil, -- by listed owners
  taken = nil,        -- the listed owner that holds the lock
}

local queue = {
  key = queue_key, timeouts_key = timeouts_key, now = epoch_ms(),
  is_here = nil,                     -- whether it can be written
  may_be_joined = nil,               -- by listed owners
  waiters = {}, old_deadlines = {},  -- as it was read: the owners in their order, and their deadlines
  stay = {}, deadlines = {},         -- as it will be: likewise
  joined = {},                       -- those in stay that are new
  last = nil,                        -- the last deadline
}

-- Reads the queue. One on the other server is taken as empty, and nothing is written to it.
local function read(queue)
  local keys = call_if_here('EXISTS', queue.key, queue.timeouts_key)
  if keys and keys > 0 then
    queue.waiters, queue.old_deadlines = read_queue(queue.key, queue.timeouts_key, queue.now)
  end
  queue.is_here = keys ~= nil
end

-- Ends the hold of an owner, unless that is "", and finds the holder.
local function release(lock, owner)
  if owner ~= '' then
    lock.freed = tostring(redis.call('HDEL', lock.hash, owner))
  end
  lock.fields = call_if_here('HRANDFIELD', lock.hash, 2)
  lock.holder = lock.fields and (lock.fields[1] or false)
  lock.left = lock.holder and redis.call('PTTL', lock.hash) or -2
  if lock.freed == '1' and lock.holder then
    --- include common/foreign_fields.lua
    keep_foreign(lock.hash)
  end
end

-- Checks the holder. A listed owner keeps the lock: the reply was lost when it got it. If the hash is another
-- application's, a release is not refused, and neither is a client that only leaves the queue; the next command is.
local function check_holder(lock, client)
  local lease = client.leases[lock.holder]
  if not lease or lock.fields[2] then
    local ok, fields = pcall(check_lock, lock.hash, lock.fields)
    if ok then
      lock.holder = owner_in(fields) -- of a read/write lock, one of the fields is its mode
    elseif lock.freed == '' and next(client.leases) then
      error(fields, 0)
    end
    lock.is_ours = lock.is_ours and ok
  elseif lock.is_ours then
    lock.taken, client.leases[lock.holder] = lock.holder, nil
    if lock.left < lease then
      lock.left = lease
      redis.call('PEXPIRE', lock.hash, lease)
    end
  end
end

-- Reports whether the lock may go to a listed owner, as no waiter is before it.
local function is_next(lock, queue)
  return not queue.stay[1] and not lock.holder and lock.may_be_taken
end

local function grant(lock, client, owner)
  local lease = client.leases[owner]
  take(lock.hash, lease, owner, '1')
  lock.holder, lock.taken, lock.left = owner, owner, lease
  client.leases[owner] = nil
end

-- Reports whether an owner that is not listed was the client's, and has left.
local function has_left(client, owner)
  local prefix = client.prefix
  local number = string.sub(owner, 1, #prefix) == prefix and string.match(owner, '^%d+$', #prefix + 1)
  return number and tonumber(number) <= client.up_to
end

local function client_of(owner)
  return string.match(owner, '^[^:]*')
end

local function listens(lock, owner)
  return redis.call('PUBSUB', NUMSUB, lock.channel .. ':' .. owner)[2] > 0
end

-- Decides, in one walk along the queue, which waiters stay, and takes the lock for the first if it is listed. Each
-- waiter gets its full timeout from when the one before it counts as dead. A waiter that goes leaves a gap, and those
-- behind it move up by the gap, as far as each keeps its full timeout: Redisson's waiters do not refresh their
-- timeouts, and would otherwise count as dead for having waited long.
local function walk(lock, queue, client)
  local now, timeout, stay, leases = queue.now, client.timeout, queue.stay, client.leases
  local last = now -- the deadline of the waiter before
  local gap, shift = 0, 0 -- by how much the next waiter may move up, and by how much it has with those before it
  local dead = {} -- clients
  for _, owner in ipairs(queue.waiters) do
    local is_listed, is_first, goes, own_deadline = leases[owner], not stay[1], false, nil
    local deadline = queue.old_deadlines[owner]
    if deadline then
      deadline = deadline - shift
    end
    if is_listed then
      goes, deadline = is_next(lock, queue), last + timeout
      if goes then
        grant(lock, client, owner)
      end
    elseif has_left(client, owner) then
      goes = true
    elseif is_first and (not deadline or deadline <= now) then
      goes = true
      dead[client_of(owner)] = true
    elseif next(dead) and dead[client_of(owner)] then -- only one timeout is waited for a dead process
      goes = is_owner(owner) and not listens(lock, owner)
    elseif is_first and not lock.holder and deadline > now + timeout and client_of(owner) ~= client.uuid
      and not listens(lock, owner) then
      -- It is next, but cannot be woken. Its timeout may still include the TTL of a holder that has left since: it gets
      -- one full timeout from now. Those behind it keep theirs: if it takes the lock after all, Redisson subtracts its
      -- own timeout from each, which is longer.
      own_deadline = now + timeout
    end
    if goes then
      gap = gap + timeout
      call_if_here('LREM', queue.key, 0, owner)
    else
      if gap > 0 and deadline and not is_listed then
        local closed = math.min(gap, math.max(deadline - last - timeout, 0))
        shift, deadline, gap = shift + closed, deadline - closed, 0
      end
      stay[#stay + 1], queue.deadlines[owner] = owner, own_deadline or deadline
      last = math.max(last, deadline or last)
    end
  end
  queue.last = last
end

-- Lets the listed owners join that are not in the queue yet, unless it is full. The timeout of the first waiter begins
-- when the hold ends. Owners that only try come last: one of them gets the lock if it is free, and none waits.
local function serve_others(lock, queue, client)
  local stay = queue.stay
  for i = FIRST, #ARGV, 3 do
    local owner, waits = ARGV[i], ARGV[i + 2] == '1'
    if waits and client.leases[owner] and not queue.deadlines[owner] then
      if is_next(lock, queue) then
        grant(lock, client, owner)
      elseif queue.may_be_joined and #stay < MAX_ENTRIES then
        if queue.last == queue.now then
          queue.last = queue.now + math.max(lock.left, 0)
        end
        queue.last = queue.last + client.timeout
        stay[#stay + 1], queue.deadlines[owner] = owner, queue.last
        queue.joined[#queue.joined + 1] = owner
      end
    end
  end
  if ARGV[FIRST] and is_next(lock, queue) then
    grant(lock, client, ARGV[FIRST])
  end
end

-- Sets the TTL of a key of the queue. If Redis refuses that, a new key is deleted again: a queue whose clients have all
-- died must not stay forever.
local function expire(key, ttl, is_new)
  if type(redis.pcall('PEXPIRE', key, ttl)) == 'table' then
    if is_new then
      call_if_here('DEL', key)
    end
    call_if_here('PEXPIRE', key, ttl) -- fails the script with the same error
  end
end

-- Writes the deadlines that have changed, and removes all others: Redisson has none of owners that are not in the
-- queue. Then writes the waiters that join: without a deadline they would count as dead. The keys last for some time
-- after the last deadline, since Redisson's clients may join the queue and set no TTL.
local function save(queue)
  local changed, old = {}, queue.old_deadlines
  for owner, deadline in pairs(queue.deadlines) do
    if deadline ~= old[owner] then
      changed[#changed + 1], changed[#changed + 2] = deadline, owner
    end
  end
  for i = 1, #changed, 1000 do -- Lua's stack takes some thousands at most
    call_if_here('ZADD', queue.timeouts_key, unpack(changed, i, math.min(i + 999, #changed)))
  end
  for owner in pairs(old) do
    if not queue.deadlines[owner] then
      call_if_here('ZREM', queue.timeouts_key, owner)
    end
  end
  if queue.stay[1] then
    local ttl = string.format('%.0f', math.min(queue.last - queue.now, MAX_WAIT) + 600000)
    expire(queue.timeouts_key, ttl, not next(old))
    for i = 1, #queue.joined, 1000 do
      call_if_here('RPUSH', queue.key, unpack(queue.joined, i, math.min(i + 999, #queue.joined)))
    end
    expire(queue.key, ttl, not queue.waiters[1])
  end
end

-- Wakes the first waiter of a free lock, unless the client listed it; also if the hold had expired before its release
-- came: nothing else does that. Without a waiter, wakes MultiLocks, which are in no queue.
local function wake_first(lock, queue, leases)
  local first = queue.stay[1]
  if not lock.holder and not (first and leases[first]) and (lock.freed ~= '' or first ~= queue.waiters[1]) then
    redis.call(PUBLISH, first and lock.channel .. ':' .. first or lock.channel, '0')
  end
end

local function reply(lock, queue, leases)
  local first = queue.stay[1]
  if lock.taken then
    return {GRANTED, 0, lock.taken, lock.freed}
  elseif not lock.is_ours then
    return {REFUSED, 1, '', lock.freed}
  elseif lock.holder then
    return {REFUSED, lock.left, lock.holder, lock.freed}
  elseif first and not leases[first] then
    return {REFUSED, math.max(queue.deadlines[first] - queue.now, 1), '', lock.freed}
  end
  return {REFUSED, 0, '', lock.freed}
end

-- A key of another type is refused before the first change. But a lock is released even if its queue is not ours; the
-- next command is refused.
local ok, problem = pcall(read, queue)
if not ok and (releases == '' or not string.find(words_of(problem), '^WRONGTYPE')) then
  error(problem, 0)
end
lock.is_ours = ok

release(lock, releases)
-- A key that was just deleted can only be created on the new server: if the hash is not here, the lock is not taken.
lock.may_be_taken = how == '1' and lock.holder ~= nil and lock.is_ours
queue.may_be_joined = #how == 1 or lock.holder == nil or lock.holder == how
if lock.holder then
  check_holder(lock, client)
end

walk(lock, queue, client)
serve_others(lock, queue, client)
if queue.is_here then
  save(queue)
end
wake_first(lock, queue, client.leases)
return reply(lock, queue, client.leases)
