-- The wait queue of a lock, in which its waiting processes have entries: how it is stored. It is the first of five
-- parts, which are prepended to the scripts that use a wait queue, after take.lua and other_keys.lua:
--
--   wait_queue_entries.lua   what is stored, and how it is read and written
--   wait_queue_order.lua     the entries in their order
--   wait_queue_transfer.lua  which client is the first, and how it gets the lock
--   wait_queue_claim.lua     a client asks for the lock, and gets an entry if it is refused
--   wait_queue.lua           a client leaves, or releases the lock; wait_queue() opens a queue
--
-- The wait queue is a hash and a sorted set beside the lock's hash, which Redisson does not know. The hash has all that is
-- known of the entries:
--
--   client uuid -> "<arrived> <seen> <ttl> <term> <seq> <mode> <tokens> <listens>[ <kept>]"
--                  the entry of a client: when it was added and when the client was last seen
--                  (epoch, µs); for how many ms from then the entry counts, which is also the
--                  lease of a transfer to it; the term under which the client waits; the command
--                  that added or confirmed the entry; the mode ("0" exclusive, "1" shared); how
--                  many fencing tokens a transfer draws for it; and "1" if the client listens on
--                  its turn channel. The entry of a MultiLock reserves the lock: it gets no
--                  transfer, but while it is the first, a free lock is kept for it since <kept>, for half of
--                  its <ttl>, but at most MAX_KEPT: "0" is not yet, and "-" no longer, since that was too long.
--                  If it wants to read, it keeps no reader from joining others; see pass_on for when it is woken
--   open        -> until when (epoch, µs) the free lock is left to foreign clients
--   turns       -> how many transfers there were since it was last left to them, while any waited
--
-- The sorted set has their order, so that no script reads all entries:
--
--   "-<client uuid>" -> minus when the entry expires, so that the first to expire are the last below 0
--   client uuid      -> when the entry was added, if it counts: it listens, or reserves the lock. If it does neither,
--                       that minus 2 * HALF, so that foreign clients are below all others. A MultiLock for which the
--                       lock is no longer kept has none
--
-- If the two do not agree, since one was lost or has garbage, the order is made anew from the hash.
--
-- Foreign clients are those that cannot get a transfer: clients without an entry, such as Redisson's, and
-- clients whose entry does not listen. Any other field or value is garbage, and is removed.
--
-- An entry in the ARGV of a script is "<ttl> <term> <seq> <mode> <tokens> <listens>", with " r" after
-- it if it reserves the lock, and "" for none. After the "r" is for how many µs the client has waited for
-- several locks that no single script takes; see add_since. The settings are "<open time> <alone> <period>": for how
-- many ms a lock is left to foreign clients; "1" if the server is alone, and so knows all subscribers; and
-- every how many ms a lock is left to foreign clients that are not seen (0: never). Clients may differ in
-- their TTL, and each trusts a transfer for its own.
--
-- Most wait queues are empty. A script calls size_of, and wait_queue only if it must, so that an empty one
-- costs one command. For the same reason, the functions of a queue are made when it is opened.

-- The form of a client, in lower case.
local CLIENT = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$'

-- Times in µs are less than 2^52 until the year 2112, and scores are exact up to twice that.
local HALF = 4503599627370496

-- The time (epoch, µs) for all wait queues of a script: in different orders, two clients would wait for each other.
local script_time

-- Returns the key of the sorted set of a wait queue.
local function order_of(key)
  return (string.gsub(key, 'queue', 'order', 1))
end

-- Returns the number of fields of a wait queue, or nil if it is not here; see other_keys.lua. own: an owner that cannot
-- get the lock, since another one holds it; entry is what it adds. If it adds none, and nothing is to be removed, 0 is
-- returned.
local function size_of(key, own, entry)
  local n = beside('HLEN', key)
  if n and n > 0 and own and entry == '' then
    local values = beside('HMGET', key, string.match(own, '^[^:]*'), 'open')
    return values and (values[1] or values[2]) and n or values and 0
  end
  return n
end

-- Reports whether an entry is before another.
local function is_before(a, b)
  return a.at < b.at or a.at == b.at and a.client < b.client
end

-- Reports whether a text is a number of at most so many digits.
local function has_digits(text, max)
  return #text <= max and string.find(text, '^%d+$')
end

-- Returns the entry of a client, nil if the text is not one, or is over.
local function parse_entry(client, text, now)
  local core, arrived, seen, ttl, term, seq, mode, tokens, listens, kept =
    string.match(text, '^((%d+) (%d+) (%d+) (%d+) (%d+) ([01]) (%d+) ([01])) ?([-%d]*)$')
  if not (core and string.find(client, CLIENT) and not string.find(client, '%u')
    and #arrived <= 17 and tonumber(arrived) < HALF and #seen <= 17 and #ttl <= 13 and tonumber(ttl) <= MAX_ENTRY_TTL
    and #term <= 20 and #seq <= 20 and #tokens <= 9 and (kept == '' or kept == '-' or has_digits(kept, 17)))
    -- A clock that was set back must not keep an entry for long.
    or math.abs(now - seen) >= ttl * 1000 then
    return nil
  end
  if kept ~= '' and kept ~= '-' and tonumber(kept) > now then
    kept = '0'
  end
  return {
    client = client, text = core, arrived = arrived, at = tonumber(arrived), ends = seen + ttl * 1000, ttl = tonumber(ttl),
    term = term, seq = seq, mode = mode, tokens = tokens, listens = listens == '1', kept = kept ~= '' and kept,
  }
end

-- Reports whether an entry keeps others waiting.
local function is_ordered(entry)
  if entry.kept then
    return entry.kept ~= '-'
  end
  return entry.listens
end

-- Puts an entry into the sorted set.
local function put_in_order(order, entry)
  local score = is_ordered(entry) and entry.at or not entry.kept and entry.at - 2 * HALF
  if score then
    redis.call('ZADD', order, -entry.ends, '-' .. entry.client, score, entry.client)
  else
    redis.call('ZADD', order, -entry.ends, '-' .. entry.client)
  end
end

-- Returns the rest of the key of a wait queue, which the keys and channels of a lock have in common.
local function of_lock(key)
  return string.sub(key, (string.find(key, ':', 1, true)))
end

-- Returns the number of subscribers of a lock's channel that do not use its wait queue, as far as this server has them.
-- Clients that use it also subscribe to a second channel.
local function foreign_subscribers(key, channel)
  local n = redis.call('PUBSUB', NUMSUB, channel, 'lockkeeper_waiters' .. of_lock(key))
  return math.max(n[2] - n[4], 0)
end

-- Returns the channel on which the client of an entry hears that its turn has come. With sharded pub/sub, a client has one
-- for each lock, since the channel must be in the lock's slot.
local function turn_channel(key, entry)
  return 'lockkeeper_turn:' .. entry.client .. (SHARDED and of_lock(key) or '')
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
  local open_time, alone, every = string.match(settings, '^(%d+) ([01]) (%d+)$')
  open_time, every = tonumber(open_time), tonumber(every)
  local queue = {
    key = key, order = order, client = client, now = now, open_time = open_time, alone = alone == '1', every = every,
    turns = 0, number = size and beside('ZCOUNT', order, -HALF, '(0'),
  }
  -- A server to which a cluster moves the slot refuses EXISTS, unless all keys are here.
  local here = queue.number and ((size == 0) == (queue.number == 0) or beside('EXISTS', key, order))

  -- Reports whether all of the lock's keys are here. A server that is alone has no slots to move.
  function queue.all_here()
    return here and (queue.alone or beside('EXISTS', hash, key, order))
  end

  -- Sets a field, unless the server is out of memory; a client without an entry polls. entry: the field is its own. The
  -- wait queue lasts at least as long as it.
  function queue.set(field, value, entry)
    if not here or queue.number == 0 and not queue.all_here() then
      return -- a new key here would stop the move of the old one
    end
    local ok, problem = pcall(function()
      local ttl = math.max(entry and entry.ttl or open_time + 1000, beside('PTTL', key) or 0)
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
      beside('PEXPIRE', key, open_time + 1000)
    end
  end
  function queue.drop(name)
    beside('HDEL', key, name)
    beside('ZREM', order, name, '-' .. name)
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
  -- Those that have expired. Each is removed once, so it does not matter how many there are, but that one script would
  -- block Redis with very many.
  local over = queue.number > 0 and redis.call('ZRANGE', order, -now, '(0', 'BYSCORE', 'LIMIT', 0, 1000) or {}
  for _, member in ipairs(over) do
    queue.drop(string.sub(member, 2))
  end
  return queue
end
