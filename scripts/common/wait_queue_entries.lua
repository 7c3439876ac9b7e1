-- The wait queue of a lock, in which its waiting processes have entries: how it is stored. It is the first of four
-- parts, which are prepended to the scripts that use a wait queue, after take.lua and other_keys.lua:
--
--   wait_queue_entries.lua   what is stored, and how it is read and written
--   wait_queue_transfer.lua  which client is the first, and how it gets the lock
--   wait_queue_claim.lua     a client asks for the lock, and gets an entry if it is refused
--   wait_queue.lua           a client leaves, or releases the lock; wait_queue() opens a queue
--
-- The wait queue is a hash beside the lock's, which Redisson does not know:
--
--   client uuid -> "<arrived> <seen> <ttl> <term> <seq> <mode> <tokens> <listens>[ <kept>]"
--                  the entry of a client: when it was added and when the client was last seen
--                  (epoch, µs); for how many ms from then the entry counts, which is also the
--                  lease of a transfer to it; the term under which the client waits; the command
--                  that added or confirmed the entry; the mode ("0" exclusive, "1" shared); how
--                  many fencing tokens a transfer draws for it; and "1" if the client listens on
--                  its turn channel. The entry of a MultiLock reserves the lock: it gets no
--                  transfer, but while it is the first, a free lock is kept for it since <kept>, for half of
--                  its <ttl>, but at most MOST_KEPT: "0" is not yet, and "-" no longer, since that was too long.
--                  If it wants to read, it keeps no reader from joining others; see pass_on for when it is woken
--   open        -> until when (epoch, µs) the free lock is left to foreign clients
--   turns       -> how many transfers there were since it was last left to them, while any waited
--
-- Foreign clients are those that cannot get a transfer: clients without an entry, such as Redisson's, and
-- clients whose entry does not listen. Any other field or value is garbage, and is removed.
--
-- An entry in the ARGV of a script is "<ttl> <term> <seq> <mode> <tokens> <listens>", with " r" after
-- it if it reserves the lock, and "" for none. After the "r" is for how many µs the client has waited for
-- several locks that no single script takes; see place. The settings are "<open time> <alone> <period>": for how
-- many ms a lock is left to foreign clients; "1" if the server is alone, and so knows all subscribers; and
-- every how many ms a lock is left to foreign clients that are not seen (0: never). Clients may differ in
-- their TTL, and each trusts a transfer for its own.
--
-- Most wait queues are empty. A script calls fields_of, and wait_queue only if it must, so that an empty one
-- costs one command. For the same reason, the functions of a queue are made when it is opened.

-- The form of a client, in lower case.
local CLIENT = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$'

-- The time (epoch, µs) for all wait queues of a script: in different orders, two clients would wait for each other.
local script_time

-- Of how many tries that are refused one reads all entries, so that those of the dead do not pile up; of as many as there
-- are entries, if those are more. Which try it is depends on the client, since a process may not live for long.
local CLEANS_EVERY = 64

-- Returns the fields and values of a wait queue, or nil if it is not here; see other_keys.lua. Fails if there are too
-- many. own: only what a client needs that cannot get the lock, since another owner holds it: its own entry, and open. So
-- its try costs the same however many clients wait. own is its owner; entry is what it adds.
local function fields_of(key, own, entry)
  local n = beside('HLEN', key)
  if not n or n == 0 then
    return n and {}
  elseif n > MOST_QUEUE_FIELDS then
    error('WRONGTYPE the wait queue of the lock has ' .. n .. ' fields, more than ' .. MOST_QUEUE_FIELDS, 0)
  end
  local seq = own and string.match(entry, '^%d+ %d+ (%d+)')
  local try = seq and seq + (tonumber(string.sub(own, 1, 8), 16) or 0)
  if not own or try and try % math.max(CLEANS_EVERY, n) == 0 then
    return beside('HGETALL', key)
  end
  local client, fields = string.match(own, '^[^:]*'), {}
  local values = beside('HMGET', key, client, 'open')
  for i, field in ipairs(values and {client, 'open'} or {}) do
    if values[i] then
      fields[#fields + 1] = field
      fields[#fields + 1] = values[i]
    end
  end
  return values and fields
end

-- Reports whether an entry is before another.
local function is_before(a, b)
  return a.at < b.at or a.at == b.at and a.client < b.client
end

-- Reads a wait queue. fields is the result of fields_of, hash the lock's, and client the one that the command is about.
-- The result has the settings, the entries, the client's own (mine), and the fields open and turns.
local function read_entries(fields, key, settings, hash, client)
  if not script_time then
    local clock = redis.call('TIME')
    script_time = clock[1] * 1000000 + clock[2]
  end
  local now = script_time
  local open_time, alone, every = string.match(settings, '^(%d+) ([01]) (%d+)$')
  open_time, every = tonumber(open_time), tonumber(every)
  local entries = {}
  local queue = {
    key = key, client = client, now = now, open_time = open_time, alone = alone == '1', every = every, entries = entries, turns = 0,
    entered = 0, -- the TTL of the entry that this script has added
  }

  -- The number of entries with each TTL: there may be many entries, but few TTLs.
  local ttls = {}
  local function count(ttl, n)
    ttls[ttl] = (ttls[ttl] or 0) + n
  end
  queue.count = count
  -- Returns the longest TTL of an entry, 0 if there is none.
  local function longest()
    local most = queue.entered
    for ttl, n in pairs(ttls) do
      most = n > 0 and math.max(most, ttl) or most
    end
    return most
  end
  -- Returns the TTL of the wait queue: an empty one soon disappears.
  local function lasts()
    local ttl = longest()
    return ttl > 0 and ttl or open_time + 1000
  end
  -- Deletes a field, unless it is out of reach.
  local function drop(field)
    beside('HDEL', key, field)
    if longest() > 0 or queue.open or queue.turns > 0 then
      beside('PEXPIRE', key, lasts())
    end
  end
  queue.drop = drop

  -- Reports whether all of the lock's keys are here. A server that is alone has no slots to move.
  function queue.all_here()
    return queue.alone or beside('EXISTS', hash, key)
  end
  -- Sets a field, unless the server is out of memory; a client without an entry polls. ttl: the wait queue lasts for so
  -- long at least.
  function queue.set(field, value, ttl)
    if not fields[1] and not queue.all_here() then
      return -- a new key here would stop the move of the old one
    end
    if ttl then
      ttl = math.max(ttl, beside('PTTL', key) or 0)
    end
    local ok, problem = pcall(take, key, ttl or lasts(), field, value)
    if not ok and not string.find(words_of(problem), '^OOM ') and not is_elsewhere(problem) then
      error(problem, 0)
    end
  end
  function queue.remove(entry)
    entry.gone = true
    count(entry.ttl, -1)
    if not entry.is_new then
      drop(entry.client)
    end
  end
  -- Returns the i-th entry in the order of arrival. The first is all that most scripts need, so all are sorted only for
  -- the second.
  local sorted, found = false, false
  function queue.entry(i)
    if i > 1 and not sorted then
      table.sort(entries, is_before)
      sorted = true
    elseif not found and not sorted then
      local first = 1
      for j = 2, #entries do
        first = is_before(entries[j], entries[first]) and j or first
      end
      entries[1], entries[first] = entries[first], entries[1]
    end
    found = true
    return entries[i]
  end
  -- Adds an entry at its place.
  function queue.add(entry)
    entries[#entries + 1] = entry
    sorted, found = false, false
    count(entry.ttl, 1)
  end

  -- Reports whether a text is a number of at most so many digits.
  local function is_number(text, most)
    return #text <= most and string.find(text, '^%d+$')
  end

  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    if (field == 'open' or field == 'turns') and not is_number(value, 17) then
      beside('HDEL', key, field)
    elseif field == 'open' then
      local open = tonumber(value)
      if open - now <= open_time * 1000 then -- else the clock was set back
        queue.open = open
      end
    elseif field == 'turns' then
      queue.turns = tonumber(value)
    else
      local text, arrived, seen, ttl, term, seq, mode, tokens, listens, kept =
        string.match(value, '^((%d+) (%d+) (%d+) (%d+) (%d+) ([01]) (%d+) ([01])) ?([-%d]*)$')
      local is_entry = arrived and string.find(field, CLIENT) and not string.find(field, '%u')
        and #arrived <= 17 and #seen <= 17 and #ttl <= 13 and tonumber(ttl) <= LONGEST_ENTRY
        and #term <= 20 and #seq <= 20 and #tokens <= 9 and (kept == '' or kept == '-' or is_number(kept, 17))
      -- A clock that was set back must not keep an entry for long.
      if is_entry and math.abs(now - seen) < ttl * 1000 then
        if kept ~= '' and kept ~= '-' and tonumber(kept) > now then
          kept = '0'
        end
        local entry = {
          client = field, text = text, arrived = arrived, at = tonumber(arrived), ttl = tonumber(ttl), term = term, seq = seq, mode = mode,
          tokens = tokens, listens = listens == '1', kept = kept ~= '' and kept,
        }
        queue.add(entry)
        if field == client then
          queue.mine = entry
        end
      else
        beside('HDEL', key, field)
      end
    end
  end
  return queue
end
