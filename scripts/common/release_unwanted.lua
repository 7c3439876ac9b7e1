-- The beginning of release.lua: frees a lock with an empty wait queue. Most releases end here, so this comes
-- before the code that only the others need. The header of release.lua documents the arguments.
local hash = KEYS[1]
local owner, count, lease, channel, queue_key, settings, counter = unpack(ARGV)
-- The hash has only one field, so deleting the field deletes the key, unless another application has added some.
local freed = count == '0' and redis.call('HDEL', hash, owner) == 1
local keys = freed and redis.pcall('EXISTS', hash, queue_key)
if keys == 0 then
  redis.call(PUBLISH, channel, '0')
  return 0
end
local entries = count == '0' and redis.pcall('HLEN', queue_key) or 0
-- Whether the hash has fields of another application; true also if that is not known.
local foreign = freed and (keys ~= 1 or entries == 0)
-- A key of another type does not keep the lock from being released.
local size = type(entries) == 'number' and entries or 0
