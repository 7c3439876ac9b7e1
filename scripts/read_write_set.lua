-- Takes a read/write lock for its owner, or sets how the owner holds it: as a writer,
-- as a reader, or as both. Setting instead of adding makes it safe to send again after
-- a lost reply.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  write holds wanted
-- ARGV[3]  read holds wanted. An owner without any hold gets one of one kind only
-- ARGV[4]  lease, ms
-- ARGV[5]  for how many ms a writer that is refused announces itself; 0: not at all
-- ARGV[6]  how the keys of read leases begin
-- ARGV[7]  "1": the owner gives back some of its holds, and gets none if it has none
-- ARGV[8]  the lock's channel
-- ARGV[9]  the key of a waiting writer's announcement
--
-- Reply: {1, 0, ""}       the owner holds the lock that way, for the lease from now on
--        {0, ttl, other}  refused: somebody else holds it, for ttl more ms (-1: without an
--                         end). An owner that read and wanted to write reads no more
--        {-1, 0, ""}      nobody holds it, so there is nothing to re-enter; or the owner
--                         does not, and has nothing to give back
local hash, channel, intent, owner, prefix = KEYS[1], ARGV[8], ARGV[9], ARGV[1], ARGV[6]
local writes, reads, lease = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local held = redis.call('HMGET', hash, 'mode', owner, owner .. ':write')
local mode, reading, writing = held[1], held[2], held[3]
local free = redis.call('EXISTS', hash) == 0
if ARGV[7] == '1' and not reading and not writing then
  return {-1, 0, ''}
end

local upgrade = reading and not writing and writes > 0
if upgrade then
  -- Two readers that both wanted to write would wait for each other: this one gives
  -- up its hold first, and comes back as a writer if it was the only one.
  free = leave(hash, owner, prefix, reading)
  reading = nil
end

local granted
if free then
  if not upgrade and writes + reads > 1 then
    return {-1, 0, ''}
  end
  granted = true
elseif upgrade then
  granted = false
elseif reading or writing then
  granted = true
else
  granted = mode == 'read' and writes == 0 and reads == 1 and not announced(intent, client(owner))
end

if granted then
  withdraw(intent, owner)
  hold(hash, owner, writes, reads, lease, prefix, free, reading)
  if writing and writes == 0 then
    redis.call('PUBLISH', channel, '1') -- readers may come in now; Redisson forgets to say so
  end
  return {1, 0, ''}
end
-- Not while the slot is being moved: a key in the place of one that is to come would stop it.
if writes > 0 and ARGV[5] ~= '0' and beside('EXISTS', hash, intent) then
  redis.call('SET', intent, owner, 'PX', ARGV[5])
end
local some = redis.call('HRANDFIELD', hash, 2)
local other = some[1] == 'mode' and some[2] or some[1]
return {0, redis.call('PTTL', hash), other or ''}
