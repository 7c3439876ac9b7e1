-- Counts a latch down for several requests of a process. A count-down with an id counts once.
--
-- The ids are in a set of their own until the latch opens. Redisson does not know the set: it may open the
-- latch and close it again, and then the ids belong to an earlier latch. So a latch that has been counted
-- down by id has a TTL, of a century: counting down keeps the TTL, and a latch that is closed again has none.
--
-- KEYS[1]  the latch, a string: how many count-downs are missing
-- KEYS[2]  the record of the client's last command
-- KEYS[3]  the set of the ids, with a mark that shows that the set is ours. It lasts for a week after the last
--          count-down by id
-- ARGV[1]  the number of the command
-- ARGV[2]  the latch's channel, on which the opening is published
-- ARGV[3]  how many count-downs have no id
-- ARGV[4…] the ids
--
-- Reply: {the count then; 0 if the latch is open}

--- include common/number.lua
--- include common/once.lua
--- include common/counts.lua

local latch, record, ids_key = KEYS[1], KEYS[2], KEYS[3]
local command, channel, down = ARGV[1], ARGV[2], tonumber(ARGV[3])
local WEEK, CENTURY = 604800000, 3155760000000 -- in ms
local MARK = string.rep('\0', 513) -- longer than any id

-- Reports whether the set of ids exists, and whether its key has another application's value.
local function look_at_ids()
  local marked = redis.pcall('SISMEMBER', ids_key, MARK)
  if type(marked) == 'table' and not string.find(marked.err, '^WRONGTYPE') then
    marked = redis.call('SISMEMBER', ids_key, MARK) -- fails the script with the same error
  end
  return marked == 1, marked ~= 1 and redis.call('EXISTS', ids_key) == 1
end

return once(record, command, function()
  local count = number_of(latch, MAX_NUMBER, 'missing count-downs') or 0
  if count <= 0 then
    return {0}
  end
  local known = redis.call('PTTL', latch) >= 0 -- whether the ids belong to this latch
  local seen, new, has_set, foreign = {}, {}, false, false
  if #ARGV > 3 or count <= down then
    has_set, foreign = look_at_ids()
  end
  if foreign and #ARGV > 3 then
    error('WRONGTYPE the key for the ids of the latch has a value of another type', 0)
  end
  for i = 4, #ARGV do
    local id = ARGV[i]
    if not seen[id] and not (known and redis.call('SISMEMBER', ids_key, id) == 1) then
      seen[id] = true
      table.insert(new, id)
    end
  end
  count = count - down - #new
  if down + #new == 0 then
    return {count}
  elseif count <= 0 then
    redis.call(PUBLISH, channel, '0')
    return {0}, function()
      if has_set then
        redis.call('DEL', latch, ids_key)
      else
        redis.call('DEL', latch)
      end
    end
  end
  return {count}, function()
    redis.call('DECRBY', latch, down + #new)
    if #new == 0 then
      return
    end
    -- Commands that may be refused come first, since only the count is restored.
    local ok, problem = pcall(function()
      redis.call('PEXPIRE', ids_key, WEEK)
      redis.call('SADD', ids_key, MARK, unpack(new))
      redis.call('PEXPIRE', ids_key, WEEK)
      if has_set and not known then
        redis.call('DEL', ids_key)
        redis.call('SADD', ids_key, MARK, unpack(new))
        redis.call('PEXPIRE', ids_key, WEEK)
      end
      if not known then
        redis.call('PEXPIRE', latch, CENTURY)
      end
    end)
    if not ok then
      redis.call('INCRBY', latch, down + #new)
      error(problem, 0)
    end
  end
end)
