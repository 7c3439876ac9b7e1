-- Common part of the scripts that read other owners in a lock's hash, or end their holds.
--
-- A key with the name of a lock may belong to another application. Such a key is never changed, shown or
-- waited for: the script fails, and its error has no field and no value of the key. An owner of a lock is
-- "<client uuid>:<number>", with ":write" behind it if it writes, and the id of its transaction if it has
-- one in Redisson. Its value is a hold count. A read/write lock has another field, its "mode".

-- How many fields of a hash are checked. A lock with many readers has more: Redis then chooses some at
-- random. So the check costs the same for a lock with thousands of readers, and for a foreign hash of
-- a million fields. Fields that are deleted are named by the caller, or checked one by one.
local MAX_SEEN = 16

-- How long an owner, and a hold count, may be. Other applications may have written longer ones, of any length. A
-- count of 18 digits fits into 64 bits.
local MAX_OWNER_LENGTH, MAX_COUNT_LENGTH = 512, 18

-- Lockkeeper and Redisson write lower-case digits only.
local OWNER = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x:%-?%d+(.*)$'

-- Reports whether a text is an owner.
local function is_owner(text)
  local rest = #text <= MAX_OWNER_LENGTH and not string.find(text, '%u') and string.match(text, OWNER)
  if rest == '' or rest == ':write' then
    return true
  end
  local transaction = rest and string.match(rest, '^:(%x+)$') or rest and string.match(rest, '^:write:(%x+)$')
  return transaction and #transaction == 32
end

-- Fails the script because a key is not ours.
local function refuse_foreign(what)
  error('WRONGTYPE ' .. what .. ': expected owners, "<client uuid>:<number>"', 0)
end

-- Returns a list of some fields of a lock's hash, each with its value behind it; empty if there is no such key. Fails
-- if one of them is not a lock's. names are two fields of the hash, or its only one, if they are known. The values are
-- read only if all names are owners, and all values are as short as hold counts.
local function check_lock(hash, names)
  if not names or names[2] then
    names = redis.call('HRANDFIELD', hash, MAX_SEEN)
  end
  local fields, ours, has_mode = {}, true, false
  for _, name in ipairs(names) do
    ours = ours and (name == 'mode' or is_owner(name)) and redis.call('HSTRLEN', hash, name) <= MAX_COUNT_LENGTH
  end
  local values = ours and names[1] and redis.call('HMGET', hash, unpack(names)) or {}
  for i, value in ipairs(values) do
    fields[2 * i - 1], fields[2 * i] = names[i], value
  end
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    if name == 'mode' then
      has_mode = value == 'read' or value == 'write'
      ours = ours and has_mode and #fields > 2
    else
      ours = ours and string.find(value, '^%d+$')
    end
  end
  -- Several owners share a lock only as readers.
  if not ours or #fields > 2 and #fields < 2 * MAX_SEEN and not has_mode then
    refuse_foreign('the key is a hash with ' .. redis.call('HLEN', hash) .. ' fields, but not a lock')
  end
  return fields
end

-- Returns the first owner in such a list, and its value; "" if there is none.
local function owner_in(fields)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' then
      return fields[i], fields[i + 1]
    end
  end
  return '', ''
end
