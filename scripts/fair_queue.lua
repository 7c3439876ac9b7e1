-- Brings the queue of a fair lock into line with what one client says of its waiters,
-- and takes the lock for one of them if it is their turn.
--
-- KEYS[1]  the lock's hash: owner -> hold count
-- ARGV[1]  the client's uuid
-- ARGV[2]  an owner whose hold ends, or ""
-- ARGV[3]  "1": the lock may be taken; else only the queue is brought up to date
-- ARGV[4]  the client's owners up to this number leave the queue, unless they are below
-- ARGV[5]  for how long, in ms, a waiter that is not heard of counts as alive
-- ARGV[6]  its queue, a list of owners
-- ARGV[7]  its timeouts, a sorted set: owner -> when it counts as dead, epoch ms
-- ARGV[8]  how its channels begin; each waiter listens on its own, ARGV[8]:owner
-- ARGV[6+3i], ARGV[7+3i], ARGV[8+3i]
--          an owner, its lease in ms, and "1" if it waits in the queue; "0" tries once,
--          and gets the lock if it is free and the queue is empty
--
-- Reply: {1, 0, owner, freed}     that owner of the client holds the lock
--        {0, ttl, holder, freed}  none does. While somebody holds the lock: for how long
--                                 (-1: without an end) and who; holder is "" if it is
--                                 free: ttl is when its first waiter, a stranger, counts
--                                 as dead, or 0 if nobody stands before this client
--        freed reports whether ARGV[2] held the lock, "1" or "0", and is "" without it.
--
-- While a cluster moves the slot, the queue may be out of reach. It is left as it is then:
-- a hold ends, and a free lock is taken, without regard to it.
local hash, queue, timeouts, channel = KEYS[1], ARGV[6], ARGV[7], ARGV[8]
local own, top, patience = ARGV[1] .. ':', tonumber(ARGV[4]), tonumber(ARGV[5])

-- How much longer than the last of its waiters counts as alive the queue is kept, in ms:
-- Redisson's may join it meanwhile, and set no TTL.
local reserve = 600000
local most = 31536000000

-- What fails for a key of another type comes before the first change.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local known = beside('EXISTS', queue, timeouts) -- nil: out of reach
local line, timed = {}, {}
if known and known > 0 then
  line = redis.call('LRANGE', queue, 0, -1)
  timed = redis.call('ZRANGE', timeouts, 0, -1, 'WITHSCORES')
end
local freed = ''
if ARGV[2] ~= '' then
  freed = tostring(redis.call('HDEL', hash, ARGV[2]))
end
local holder = beside('HRANDFIELD', hash)
local may = ARGV[3] == '1' and holder ~= nil -- nil: what has just gone comes back on the new server
local left = holder and redis.call('PTTL', hash) or -2

local scores = {}
for i = 1, #timed, 2 do
  scores[timed[i]] = tonumber(timed[i + 1])
end
local leases = {} -- of the owners that the client lists
for i = 9, #ARGV, 3 do
  leases[ARGV[i]] = tonumber(ARGV[i + 1])
end

local taken
if holder and leases[holder] then -- the reply to an earlier take was lost
  taken = holder
  if left < leases[holder] then
    left = leases[holder]
    redis.call('PEXPIRE', hash, left)
  end
  leases[holder] = nil -- it waits no more
end

local function grant(owner)
  take(hash, leases[owner], owner, '1')
  holder, taken, left = owner, owner, leases[owner]
  leases[owner] = nil
end

local function leaves(owner)
  local number = string.sub(owner, 1, #own) == own and string.match(owner, '^%d+$', #own + 1)
  return number and tonumber(number) <= top
end

local function client(owner)
  return string.match(owner, '^[^:]*')
end

local function listens(owner)
  return redis.call('PUBSUB', 'NUMSUB', channel .. ':' .. owner)[2] > 0
end

-- One walk along the queue. Each waiter is given its patience from when the one before
-- it counts as dead. Those who go leave a gap, by which those behind them move up, as
-- far as this leaves them that much: Redisson's waiters do not refresh their timeouts,
-- and would otherwise be dead for having waited long.
local stay, timeout = {}, {} -- who stays, in order, and their timeouts
local dead = {}              -- clients
local last, gap, shift = now, 0, 0
for _, owner in ipairs(line) do
  local listed, score = leases[owner], scores[owner]
  local first, goes = #stay == 0, false
  if score then
    score = score - shift
  end
  if listed then
    goes = first and not holder and may
    if goes then
      grant(owner)
    end
    score = last + patience
  elseif leaves(owner) then
    goes = true
  elseif first and (not score or score <= now) then
    goes = true
    dead[client(owner)] = true
  elseif next(dead) and dead[client(owner)] then -- so that a dead process costs its patience once
    goes = not listens(owner)
  elseif first and not holder and client(owner) ~= ARGV[1] and score > now + patience and not listens(owner) then
    -- Its turn has come, and it cannot be told. Its timeout may still count the TTL of a
    -- holder who has gone since: it is given its patience from now on, like all behind it.
    gap = math.huge
  end
  if goes then
    gap = gap + patience
    beside('LREM', queue, 0, owner)
  else
    if gap > 0 and score and not listed then
      local closed = math.min(gap, math.max(score - last - patience, 0))
      shift, score, gap = shift + closed, score - closed, 0
    end
    stay[#stay + 1], timeout[owner] = owner, score
    last = math.max(last, score or last)
  end
end

local joined = {}
for i = 9, #ARGV, 3 do
  local owner = ARGV[i]
  if ARGV[i + 2] == '1' and leases[owner] and not timeout[owner] then
    if #stay == 0 and not holder and may then
      grant(owner)
    else
      if last == now then
        last = now + math.max(left, 0)
      end
      last = last + patience
      stay[#stay + 1], timeout[owner] = owner, last
      joined[#joined + 1] = owner
    end
  end
end
for i = 9, #ARGV, 3 do
  if #stay == 0 and not holder and may then
    grant(ARGV[i])
  end
end

-- Gives a key its TTL, or takes it away again if that is refused and it is new: a queue
-- whose clients have all died must not stay for ever.
local function keep(key, new)
  local ends = string.format('%.0f', math.min(last - now, most) + reserve)
  if type(redis.pcall('PEXPIRE', key, ends)) == 'table' then
    if new then
      beside('DEL', key)
    end
    beside('PEXPIRE', key, ends)
  end
end

local moved = {}
for owner, score in pairs(timeout) do
  if score ~= scores[owner] then
    moved[#moved + 1], moved[#moved + 2] = score, owner
  end
end
if known then
  for i = 1, #moved, 1000 do -- Lua's stack takes no more than some thousands
    beside('ZADD', timeouts, unpack(moved, i, math.min(i + 999, #moved)))
  end
  -- Also those who are not in the queue at all: Redisson would never put them there.
  for owner in pairs(scores) do
    if not timeout[owner] then
      beside('ZREM', timeouts, owner)
    end
  end
end
if known and #stay > 0 then
  keep(timeouts, #timed == 0)
  for i = 1, #joined, 1000 do
    beside('RPUSH', queue, unpack(joined, i, math.min(i + 999, #joined)))
  end
  keep(queue, #line == 0)
end

local head = stay[1]
if head and not holder and not leases[head] and (freed == '1' or head ~= line[1]) then
  redis.call('PUBLISH', channel .. ':' .. head, '0')
end
if taken then
  return {1, 0, taken, freed}
elseif holder then
  return {0, left, holder, freed}
elseif head and not leases[head] then
  return {0, math.max(timeout[head] - now, 1), '', freed}
end
return {0, 0, '', freed}
