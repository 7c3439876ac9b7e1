-- The second part of the wait queue: how it is read and written. See wait_queue_entries.lua.

--- include common/take.lua
--- include common/other_keys.lua
--- include common/wait_queue_entries.lua

-- The time (epoch, µs) for all wait queues of a script: in different orders, two clients would wait for each other.
local script_time

-- Reports whether an entry is before another.
local function is_before(a, b)
  return a.at < b.at or a.at == b.at and a.client < b.client
end

-- Reads a wait queue. size is the result of size_of, hash the lock's, and client the one that the command is about.
-- The result has the settings, the client's own entry (mine), the fields open and turns, and the number of entries in
-- Redis. A queue that is not here is empty, and stays so.
local function read_entries(size, key, settings, hash, client)
  if not script_time then
    local clock = redis.call('TIME')
    script_time = clock[1] * 1000000 + clock[2]
  end
  local now, order = script_time, order_of(key)
  local open_time, one_server, every = string.match(settings, '^(%d+) ([01]) (%d+)$')
  open_time, every = tonumber(open_time), tonumber(every)
  local queue = {
    key = key, order = order, client = client, now = now,
    open_time = open_time, one_server = one_server == '1', every = every,
    turns = 0, number = size and call_if_here('ZCOUNT', order, -HALF, '(0'),
  }
  -- A server to which a cluster moves the slot refuses EXISTS, unless all keys are here.
  local here = queue.number and ((size == 0) == (queue.number == 0) or call_if_here('EXISTS', key, order))

  -- Reports whether all of the lock's keys are here. One server has no slots to move.
  function queue.all_here()
    return here and (queue.one_server or call_if_here('EXISTS', hash, key, order))
  end

  -- Sets a field, unless the server is out of memory; a client without an entry polls. entry: the field is its own. The
  -- wait queue lasts at least as long as it.
  function queue.set(field, value, entry)
    if not here or queue.number == 0 and not queue.all_here() then
      return -- a new key here would stop the move of the old one
    end
    local ok, problem = pcall(function()
      local ttl = math.max(entry and entry.ttl or open_time + 1000, call_if_here('PTTL', key) or 0)
      take(key, ttl, field, value)
      if entry then
        put_in_order(order, entry)
        redis.call('PEXPIRE', order, ttl)
      end
    end)
    if not ok and not string.find(words_of(problem), '^OOM ') and not is_elsewhere(problem) then
      error(problem, 0)
    end
  end

  -- Removes an entry. An empty wait queue soon disappears.
  function queue.remove(entry)
    entry.gone = true
    if entry.is_new then
      return
    end
    if entry.mode == '0' and (not queue.vacated or is_before(entry, queue.vacated)) then
      queue.vacated = entry
    end
    queue.drop(entry.client)
    if queue.number == 0 and (queue.open or queue.turns > 0) then
      call_if_here('PEXPIRE', key, open_time + 1000)
    end
  end
  function queue.drop(name)
    call_if_here('HDEL', key, name)
    call_if_here('ZREM', order, name, '-' .. name)
    queue.number = queue.number - 1
  end

  -- Makes the order anew, from all fields. Fails if there are too many.
  local function repair()
    if size > MAX_QUEUE_FIELDS then
      error('WRONGTYPE the wait queue of the lock has garbage among its ' .. size .. ' fields, and more than '
        .. MAX_QUEUE_FIELDS .. ' are not looked through', 0)
    end
    local fields, entries, ttl, longest = redis.call('HGETALL', key), {}, redis.call('PTTL', key), 0
    redis.call('DEL', order)
    for i = 1, #fields, 2 do
      local name, entry = fields[i], parse_entry(fields[i], fields[i + 1], now)
      if entry then
        entries[#entries + 1] = entry
        longest = math.max(longest, entry.ttl)
      elseif name ~= 'open' and name ~= 'turns' then
        redis.call('HDEL', key, name)
      end
    end
    queue.number = #entries
    ttl = ttl < 0 and longest or ttl
    for _, entry in ipairs(entries) do
      redis.call('PEXPIRE', key, ttl) -- a user who may not set a TTL fails here
      put_in_order(order, entry)
      redis.call('PEXPIRE', order, ttl)
    end
  end

  local values = here and size > 0 and redis.call('HMGET', key, client, 'open', 'turns') or {}
  if here and size ~= queue.number + (values[2] and 1 or 0) + (values[3] and 1 or 0) then
    repair()
  end
  queue.number = here and queue.number or 0
  queue.mine = values[1] and parse_entry(client, values[1], now)
  for i, field in ipairs({'open', 'turns'}) do
    local value = values[i + 1]
    if value and not has_digits(value, 17) then
      redis.call('HDEL', key, field)
    elseif value and (field == 'turns' or value - now <= open_time * 1000) then -- else the clock was set back
      queue[field] = tonumber(value)
    end
  end
  -- Removes the entries that have expired. Each is removed once, so only very many of them would cost too much: one
  -- script would block Redis.
  local expired = queue.number > 0 and redis.call('ZRANGE', order, -now, '(0', 'BYSCORE', 'LIMIT', 0, 1000) or {}
  for _, member in ipairs(expired) do
    queue.drop(string.sub(member, 2))
  end
  return queue
end
