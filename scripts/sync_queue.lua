-- Synchronises the queue of a fair lock with the waiters of one client, and takes the lock
-- for one of them if it is next.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the client's uuid
-- ARGV[2]  an owner of the client that releases the lock, or ""
-- ARGV[3]  "1": the lock may be taken; otherwise only the queue is updated. An owner: waiters join the queue
--          only while it holds the lock. Otherwise the command is late: the client has released the lock since,
--          and the waiters may have left
-- ARGV[4]  the client's owners up to this number leave the queue, unless they are listed
-- ARGV[5]  the waiter timeout, ms: how long a waiter counts as alive after the last update by
--          its client
-- ARGV[6]  its queue, a list of owners
-- ARGV[7]  its timeouts, a sorted set: owner -> when it counts as dead, epoch ms
-- ARGV[8]  the prefix of its channels; each waiter listens on its own, ARGV[8]:owner. A MultiLock, which is
--          in no queue, listens on ARGV[8] for a lock that is free and has nothing in its queue
-- ARGV[6+3i], ARGV[7+3i], ARGV[8+3i]
--          an owner, its lease in ms, and "1" if it waits in the queue, which it joins only while that is
--          not full; "0" tries once, and gets the lock only if it is free and the queue is empty
--
-- Reply: {GRANTED, 0, owner, freed}     this owner of the client holds the lock
--        {REFUSED, ttl, holder, freed}  no owner of the client does. If the lock is held, holder
--                                       has it for ttl more ms (-1: no TTL). If it is free,
--                                       holder is "", and the first waiter, of another client,
--                                       counts as dead in ttl ms; 0 if there is none
--        freed is "1" if ARGV[2] held the lock, "0" if not, and "" without ARGV[2].
--
-- While a cluster moves the slot, the queue may be on the other server. The script then
-- ignores it: the lock is released, and taken if it is free, even if others wait.

--- include common/take.lua
--- include common/other_keys.lua
--- include common/foreign_hash.lua
--- include common/foreign_fields.lua

local hash = KEYS[1]
local uuid, releasing, allowed, up_to, waiter_timeout, queue, timeouts, channel = unpack(ARGV, 1, 8)
up_to, waiter_timeout = tonumber(up_to), tonumber(waiter_timeout)
local own = uuid .. ':'

-- How many ms the queue is kept after its last waiter counts as dead, since Redisson's clients
-- may join it and set no TTL.
local extra = 600000

-- Commands that fail for a key of another type come before the first change.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local known -- how many of the two keys there are; nil: they are out of reach, or not ours
local waiters, scores, ours, problem = {}, {}, true, nil -- scores are when the owners count as dead
ours, problem = pcall(function()
  local there = call_if_here('EXISTS', queue, timeouts)
  if there and there > 0 then
    waiters, scores = read_queue(queue, timeouts, now)
  end
  known = there
end)
-- A lock is released even if its queue is not ours; the next command is refused.
if not ours and (releasing == '' or not string.find(words_of(problem), '^WRONGTYPE')) then
  error(problem, 0)
end
local timed = next(scores) ~= nil
local freed = ''
if releasing ~= '' then
  freed = tostring(redis.call('HDEL', hash, releasing))
end
local holders = call_if_here('HRANDFIELD', hash, 2) -- nil: out of reach
local holder = holders and (holders[1] or false)
if freed == '1' and holder then
  keep_foreign(hash)
end
-- While the hash is out of reach, the lock may not be taken: a key that was just deleted can only be created on
-- the new server.
local may_take = allowed == '1' and holder ~= nil and ours
local may_join = #allowed == 1 or holder == nil or holder == allowed
local left = holder and redis.call('PTTL', hash) or -2

local leases = {} -- of the owners that the client lists
for i = 9, #ARGV, 3 do
  leases[ARGV[i]] = tonumber(ARGV[i + 1])
end

-- The end of a hold is not refused, and neither is a client that only leaves the queue; the next command is.
local foreign = not ours
if holder and not (leases[holder] and #holders == 1) then
  ours, problem = pcall(check_lock, hash, holders) -- if it is a read/write lock, one of the holders is its mode
  if not ours and releasing == '' and next(leases) then
    error(problem, 0)
  end
  foreign, holder = foreign or not ours, ours and owner_in(problem) or holder
end

local taken
if holder and leases[holder] and #holders == 1 and not foreign then -- the reply to an earlier take was lost
  taken = holder
  if left < leases[holder] then
    left = leases[holder]
    redis.call('PEXPIRE', hash, left)
  end
  leases[holder] = nil -- it no longer waits
end

local function grant(owner)
  take(hash, leases[owner], owner, '1')
  holder, taken, left = owner, owner, leases[owner]
  leases[owner] = nil
end

local function leaves(owner)
  local number = string.sub(owner, 1, #own) == own and string.match(owner, '^%d+$', #own + 1)
  return number and tonumber(number) <= up_to
end

local function client(owner)
  return string.match(owner, '^[^:]*')
end

local function listens(owner)
  return redis.call('PUBSUB', NUMSUB, channel .. ':' .. owner)[2] > 0
end

-- One walk along the queue. Each waiter gets its full timeout from when the one before it
-- counts as dead. A waiter that leaves makes a gap, and those behind it move up by the gap, as
-- far as each keeps its full timeout: Redisson's waiters do not refresh their timeouts, and
-- would otherwise count as dead for having waited long.
local stay, timeout = {}, {} -- the waiters that stay, in order, and their timeouts
local dead = {}              -- clients
local last, gap, shift = now, 0, 0
for _, owner in ipairs(waiters) do
  local listed, score = leases[owner], scores[owner]
  local first, goes, shortened = #stay == 0, false, nil
  if score then
    score = score - shift
  end
  if listed then
    goes = first and not holder and may_take
    if goes then
      grant(owner)
    end
    score = last + waiter_timeout
  elseif leaves(owner) then
    goes = true
  elseif first and (not score or score <= now) then
    goes = true
    dead[client(owner)] = true
  elseif next(dead) and dead[client(owner)] then -- only one timeout is waited for a dead process
    goes = is_owner(owner) and not listens(owner)
  elseif first and not holder and client(owner) ~= uuid and score > now + waiter_timeout and not listens(owner) then
    -- It is next, but cannot be woken. Its timeout may still include the TTL of a holder that has left since: it gets
    -- one full timeout from now. Those behind it keep theirs: if it takes the lock after all, Redisson subtracts its
    -- own timeout from each, which is longer.
    shortened = now + waiter_timeout
  end
  if goes then
    gap = gap + waiter_timeout
    call_if_here('LREM', queue, 0, owner)
  else
    if gap > 0 and score and not listed then
      local closed = math.min(gap, math.max(score - last - waiter_timeout, 0))
      shift, score, gap = shift + closed, score - closed, 0
    end
    stay[#stay + 1], timeout[owner] = owner, shortened or score
    last = math.max(last, score or last)
  end
end

local joined = {}
for i = 9, #ARGV, 3 do
  local owner = ARGV[i]
  if ARGV[i + 2] == '1' and leases[owner] and not timeout[owner] then
    if #stay == 0 and not holder and may_take then
      grant(owner)
    elseif may_join and #stay < MAX_ENTRIES then
      if last == now then
        last = now + math.max(left, 0)
      end
      last = last + waiter_timeout
      stay[#stay + 1], timeout[owner] = owner, last
      joined[#joined + 1] = owner
    end
  end
end
for i = 9, #ARGV, 3 do
  if #stay == 0 and not holder and may_take then
    grant(ARGV[i])
  end
end

-- Sets the TTL of a key. If Redis refuses that, a new key is deleted again: a queue whose
-- clients have all died must not stay forever.
local function keep(key, new)
  local ends = string.format('%.0f', math.min(last - now, MAX_WAIT) + extra)
  if type(redis.pcall('PEXPIRE', key, ends)) == 'table' then
    if new then
      call_if_here('DEL', key)
    end
    call_if_here('PEXPIRE', key, ends)
  end
end

local moved = {}
for owner, score in pairs(timeout) do
  if score ~= scores[owner] then
    moved[#moved + 1], moved[#moved + 2] = score, owner
  end
end
if known then
  for i = 1, #moved, 1000 do -- Lua's stack takes some thousands at most
    call_if_here('ZADD', timeouts, unpack(moved, i, math.min(i + 999, #moved)))
  end
  -- Also the timeouts of owners that are not in the queue: Redisson has none.
  for owner in pairs(scores) do
    if not timeout[owner] then
      call_if_here('ZREM', timeouts, owner)
    end
  end
end
if known and #stay > 0 then
  keep(timeouts, not timed)
  for i = 1, #joined, 1000 do
    call_if_here('RPUSH', queue, unpack(joined, i, math.min(i + 999, #joined)))
  end
  keep(queue, #waiters == 0)
end

local head = stay[1]
-- The first waiter is also woken if the hold has expired before its release came: nothing else does that.
if not holder and not (head and leases[head]) and (freed ~= '' or head ~= waiters[1]) then
  redis.call(PUBLISH, head and channel .. ':' .. head or channel, '0') -- a MultiLock is in no queue
end
if taken then
  return {GRANTED, 0, taken, freed}
elseif foreign then
  return {REFUSED, 1, '', freed}
elseif holder then
  return {REFUSED, left, holder, freed}
elseif head and not leases[head] then
  return {REFUSED, math.max(timeout[head] - now, 1), '', freed}
end
return {REFUSED, 0, '', freed}
