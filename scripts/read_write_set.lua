-- Takes a read/write lock for its owner, or sets its hold counts as a writer, as a reader, or
-- as both. Setting the counts, instead of adding to them, makes the script safe to send again
-- after a lost reply. A free lock goes to the first client in its wait queue, if that is
-- another one.
--
-- KEYS[1]  the lock's hash
-- ARGV[1]  owner, "<client uuid>:<number>"
-- ARGV[2]  write holds wanted
-- ARGV[3]  read holds wanted. An owner without a hold gets only one, of one of the modes
-- ARGV[4]  lease, ms
-- ARGV[5]  the prefix of the keys of read leases
-- ARGV[6]  "1": the owner releases some of its holds, and gets none if it has none
-- ARGV[7]  the lock's channel
-- ARGV[8]  the key of the wait queue
-- ARGV[9]  the settings of the wait queue
-- ARGV[10] the entry that the client adds to the wait queue if it is refused, or ""
-- ARGV[11] "1": the client was notified of a release since it was last refused
--
-- Reply: {GRANTED, 0, ""}       the owner holds the lock with these counts; the lease starts now
--        {REFUSED, ttl, other}  another owner holds it, for ttl more ms (-1: no TTL); or it is left
--                               to foreign clients for that time, and other is "". An owner that read
--                               and wanted to write has lost its read holds
--        {ABSENT, 0, ""}        the lock is free, so there is nothing to re-enter; or, with
--                               ARGV[6], the owner has no hold to release

--- include common/foreign_hash.lua
--- include common/hash_values.lua
--- include common/wait_queue.lua
--- include common/read_write.lua

local hash = KEYS[1]
local owner, writes, reads, lease, prefix, releases, channel, queue_key, settings, entry, notified = unpack(ARGV)
writes, reads, lease, releases = tonumber(writes), tonumber(reads), tonumber(lease), releases == '1'
local held = redis.call('HMGET', hash, owner, owner .. ':write')
local reading, writing = held[1], held[2]
local free = redis.call('EXISTS', hash) == 0
if releases and not reading and not writing then
  return {ABSENT, 0, ''}
end
if reading or writing then
  check_mode(hash)
elseif not free then
  check_lock(hash)
end

local upgrade = reading and not writing and writes > 0
if upgrade then
  -- Two readers that both wanted to write would wait for each other: this one first gives
  -- up its read holds, and becomes a writer if it was the only reader.
  free = leave(hash, owner, prefix, reading)
  reading = nil
end

if free and not upgrade and writes + reads > 1 then
  return {ABSENT, 0, ''}
end
local ours = (reading or writing or upgrade and free) and true -- the owner need not wait
local joins = writes == 0 and reads == 1 and (free or not ours and value_of(hash, 'mode') == 'read')
local granted = ours or not upgrade and (free or joins)
local rest -- for how many ms the free lock is left to foreign clients
local queue
if not releases or writing and writes == 0 then -- a release that ends no write hold changes nothing for others
  local size = size_of(queue_key, not granted and owner, entry)
  if size and (size > 0 or not granted and entry ~= '') then
    queue = wait_queue(size, queue_key, settings, read_write_lock(hash, prefix), owner)
    if not ours then
      granted, rest = queue.claim(free, joins, notified, entry)
      free = free and redis.call('EXISTS', hash) == 0
    elseif not releases then
      queue.leave()
    end
  end
end

if granted then
  hold(hash, owner, writes, reads, lease, prefix, free, reading)
  if writing and writes == 0 then
    redis.call(PUBLISH, channel, '1') -- readers may join now; Redisson does not publish this
    if queue then
      pcall(queue.transfer_next, true, not releases) -- the hold ends even if the wait queue is malformed
    end
  elseif queue and writes == 0 and not ours then
    queue.transfer_next(true, false, free)
  end
  return {GRANTED, 0, ''}
elseif rest then
  return {REFUSED, rest, ''}
end
local ttl = redis.call('PTTL', hash)
for _, field in ipairs(redis.call('HRANDFIELD', hash, MAX_SEEN)) do
  if is_owner(field) then
    return {REFUSED, ttl, field}
  end
end
return {REFUSED, ttl, ''}
