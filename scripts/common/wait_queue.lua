-- Common part of the scripts that use the wait queue of a lock, in which its waiting processes have entries;
-- prepended to each of them, after take.lua and other_keys.lua.
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
-- it if it reserves the lock, and "" for none. The settings are "<open time> <alone> <period>": for how
-- many ms a lock is left to foreign clients; "1" if the server is alone, and so knows all subscribers; and
-- every how many ms a lock is left to foreign clients that are not seen (0: never). Clients may differ in
-- their TTL, and each trusts a transfer for its own.
--
-- Most wait queues are empty. A script calls fields_of, and wait_queue only if it must, so that an empty one
-- costs one command.

-- True in a cluster with sharded pub/sub: the server knows all subscribers of the lock's channels,
-- and each lock has its own turn channel for each client, since that must have the lock's slot.
local SHARDED = false

-- The form of a client, in lower case.
local CLIENT = '^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$'

-- For how many µs a free lock is kept for a MultiLock at most.
local MOST_KEPT = 60000000

-- Returns the fields and values of a wait queue, or nil if it is not here; see other_keys.lua. Fails if there are too
-- many.
local function fields_of(key)
  local n = beside('HLEN', key)
  if not n or n == 0 then
    return n and {}
  elseif n > MOST_QUEUE_FIELDS then
    error('WRONGTYPE the wait queue of the lock has ' .. n .. ' fields, more than ' .. MOST_QUEUE_FIELDS, 0)
  end
  return beside('HGETALL', key)
end

-- Opens a wait queue. fields is the result of fields_of, owner the owner that the command is about, and
-- counter the key of the lock's token counter, "" if it is a read/write lock, which has none. give(owner, mode, ttl, joins)
-- makes a waiter the owner of the lock, which is free, or, with joins, held by readers.
local function wait_queue(fields, key, settings, hash, owner, counter, give)
  local clock = redis.call('TIME')
  local now = clock[1] * 1000000 + clock[2]
  local open_time, alone, every = string.match(settings, '^(%d+) ([01]) (%d+)$')
  open_time, every = tonumber(open_time), tonumber(every)
  local sees_subscribers, of_lock = SHARDED or alone == '1', string.sub(key, (string.find(key, ':', 1, true)))
  local channel = (counter == '' and 'redisson_rwlock' or 'redisson_lock__channel') .. of_lock
  local client, number = string.match(owner, '^([^:]*):?(%d*)')
  local queue, entries, mine, open, turns = {}, {}, nil, nil, 0
  local entered = 0 -- the TTL of the entry that this script has added
  local asker -- the client's own entry, while it asks for the lock
  local unblocked = math.huge -- the first place that an exclusive client has left since this script began

  -- The number of entries with each TTL: there may be many entries, but few TTLs.
  local ttls = {}
  local function count(ttl, n)
    ttls[ttl] = (ttls[ttl] or 0) + n
  end
  -- Returns the longest TTL of an entry, 0 if there is none.
  local function longest()
    local most = entered
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
    if longest() > 0 or open or turns > 0 then
      beside('PEXPIRE', key, lasts())
    end
  end
  -- Reports whether all of the lock's keys are here. A server that is alone has no slots to move.
  local function all_here()
    return alone == '1' or beside('EXISTS', hash, key)
  end
  local function turn_channel(entry)
    return 'lockkeeper_turn:' .. entry.client .. (SHARDED and of_lock or '')
  end
  local function remove(entry)
    entry.gone = true
    count(entry.ttl, -1)
    drop(entry.client)
  end
  -- Sets a field, unless the server is out of memory; a client without an entry polls.
  local function set(field, value)
    if not fields[1] and not all_here() then
      return -- a new key here would stop the move of the old one
    end
    local ok, problem = pcall(take, key, lasts(), field, value)
    if not ok and not string.find(words_of(problem), '^OOM ') and not is_elsewhere(problem) then
      error(problem, 0)
    end
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
      open = tonumber(value)
      if open - now > open_time * 1000 then
        open = nil -- the clock was set back
      end
    elseif field == 'turns' then
      turns = tonumber(value)
    else
      local text, arrived, seen, ttl, term, seq, mode, tokens, listens, kept =
        string.match(value, '^((%d+) (%d+) (%d+) (%d+) (%d+) ([01]) (%d+) ([01])) ?([-%d]*)$')
      local is_entry = arrived and string.find(field, CLIENT) and not string.find(field, '%u')
        and #arrived <= 17 and #seen <= 17 and #ttl <= 13 and tonumber(ttl) <= LONGEST_ENTRY and #term <= 20 and #seq <= 20 and #tokens <= 9
        and (kept == '' or kept == '-' or is_number(kept, 17))
      -- A clock that was set back must not keep an entry for long.
      if is_entry and math.abs(now - seen) < ttl * 1000 then
        if kept ~= '' and kept ~= '-' and tonumber(kept) > now then
          kept = '0'
        end
        local entry = {
          client = field, text = text, arrived = arrived, ttl = tonumber(ttl), term = term, seq = seq, mode = mode,
          tokens = tokens, listens = listens == '1', kept = kept ~= '' and kept,
        }
        entries[#entries + 1] = entry
        count(entry.ttl, 1)
        if field == client then
          mine = entry
        end
      else
        beside('HDEL', key, field)
      end
    end
  end
  if #entries > 1 then
    table.sort(entries, function(a, b)
      local x, y = tonumber(a.arrived), tonumber(b.arrived)
      return x < y or x == y and a.client < b.client
    end)
  end

  -- Reports whether an entry counts. An entry that does not listen yet gets no transfer, and keeps no
  -- client waiting. An entry whose client no longer listens is removed.
  local function counts(entry)
    if entry == asker or entry.kept then
      return entry == asker or entry.kept ~= '-'
    elseif entry.listens and not entry.reachable and sees_subscribers then
      entry.reachable = redis.call('PUBSUB', 'NUMSUB', turn_channel(entry))[2] > 0
      if not entry.reachable then
        remove(entry)
      end
      return entry.reachable
    end
    return entry.listens
  end

  -- Returns the first entry from the i-th on that counts, and its index.
  local function from(i)
    for j = i, #entries do
      local entry = entries[j]
      if not entry.gone and counts(entry) then
        return entry, j
      elseif entry.gone and entry.mode == '0' then
        unblocked = math.min(unblocked, j)
      end
    end
  end

  -- Returns the first entry if it is that of a MultiLock, which does not ask.
  local function reserving()
    local entry = from(1)
    return entry and entry ~= asker and entry.kept and entry
  end
  local function kept_until(entry)
    return entry.kept + math.min(entry.ttl * 500, MOST_KEPT)
  end
  local function keep(entry, since)
    entry.kept = since
    set(entry.client, entry.text .. ' ' .. since)
  end

  -- Reports whether an entry is before that of the client that asks; exclusive: one that does not share.
  local function ahead(exclusive)
    local entry, i = from(1)
    while entry and entry ~= asker do
      if entry.mode == '0' or not exclusive then
        return true
      end
      entry, i = from(i + 1)
    end
    return false
  end

  local foreign -- whether the hash that readers seem to hold is another application's; nil if that was not checked

  -- Makes a waiter the owner. Returns false while the slot is being moved, since the hash cannot be created
  -- again on the old server, and the counter may be on the other; and if another application has put
  -- something into the hash.
  local function transfer(entry, joins)
    if not joins then
      if not all_here() or beside('EXISTS', hash) == 1 then
        return false
      end
      foreign = false -- this script makes the hash
    elseif foreign == nil then
      local ok, problem = pcall(check_lock, hash)
      foreign = not ok
      if not ok and not string.find(words_of(problem), '^WRONGTYPE') then
        error(problem, 0)
      end
    end
    if foreign then
      return false
    end
    local token = 0
    if entry.tokens ~= '0' then
      -- Without a token, the waiter draws one itself, and gets the error of the counter.
      token = try_draw(counter, tonumber(entry.tokens), 0) or 0
      if token > 0 then
        redis.call('PERSIST', counter)
      end
    end
    remove(entry)
    give(entry.client .. ':' .. entry.term, entry.mode, entry.ttl, joins)
    -- The hash is not formatted with %s, which would end at a NUL byte.
    local message = entry.term .. ' ' .. entry.seq .. ' ' .. string.format('%.0f', token) .. ' ' .. hash
    redis.call('PUBLISH', turn_channel(entry), message)
    return true
  end

  -- Transfers the lock to the first entry, or to all readers before the first that does not share. joins:
  -- readers hold the lock. asks: the client asks for the lock, and gets it from the script itself. begins: reading
  -- begins with this script. MultiLocks that could not join readers before, and can now, are woken. Returns the mode in
  -- which the lock is held then, nil if it was not transferred; and whether it is kept for a MultiLock from now on.
  function queue.pass_on(joins, asks, begins)
    local passed, reads
    asker = asks and mine or asker
    local entry, i = from(1)
    while entry do
      local exclusive = entry.mode == '0' and entry.listens
      if entry.kept and entry.mode == '1' and (joins or passed) then
        reads = reads or entry ~= asker and (begins or not joins or i > unblocked)
      elseif entry.kept or exclusive and (entry == asker or joins or passed) or entry ~= asker and not transfer(entry, joins or passed) then
        break
      elseif entry ~= asker then
        passed = entry.mode
      end
      if passed == '0' then
        break
      end
      entry, i = from(i + 1)
    end
    if reads then
      -- All processes that wait are woken: so not with each reader that joins others.
      redis.call('PUBLISH', channel, '0')
    end
    local first = not joins and not passed and reserving()
    local begun = first and first.kept == '0'
    if begun then
      keep(first, string.format('%.0f', now))
    end
    return passed, begun
  end

  -- Returns the term of an entry in ARGV.
  function queue.term(wanted)
    return tonumber(string.match(wanted, '^%d+ (%d+)'))
  end

  -- Removes the client's entry, unless it waits under a later term. Reports whether it has.
  function queue.leave(term)
    if not mine or mine.gone or tonumber(mine.term) > tonumber(term or number) then
      return false
    end
    remove(mine)
    return true
  end

  -- Reports whether no entry that counts is before the client's own.
  local function is_first()
    for _, entry in ipairs(entries) do
      if entry == mine or not entry.gone and counts(entry) then
        return entry == mine
      end
    end
  end

  local function is_free()
    return not (open and open > now) and redis.call('EXISTS', hash) == 0
  end

  -- Passes on a lock that is free and not left to others. If no client gets it, that is published.
  local function pass_free()
    if is_free() and not queue.pass_on() then
      redis.call('PUBLISH', channel, '0')
    end
  end

  -- Passes on a lock that was found free: its hold has expired, or its key was deleted. A MultiLock for which it is kept
  -- from now on has not been told that the lock is free, and is woken. Returns the mode as pass_on does.
  local function pass_found()
    local passed, begun = queue.pass_on()
    if begun then
      redis.call('PUBLISH', channel, '0')
    end
    return passed
  end

  -- Passes on a lock that the client has no hold of any more, if it is free.
  function queue.pass_expired()
    if is_free() then
      pass_found()
    end
  end

  -- Passes on the lock, which readers hold, if a writer that is gone kept others from joining them. Reports whether it
  -- did.
  function queue.pass_unblocked()
    if unblocked < math.huge then
      queue.pass_on(true)
      return true
    end
  end

  -- Removes the client's entry, and passes the lock on to clients that it has kept waiting. joins: readers hold the
  -- lock, and a writer that leaves has kept those behind it from joining them. A client with others before it has kept
  -- no other waiting for the free lock. Reports whether there was an entry.
  function queue.step_back(joins)
    local first = not joins and mine and is_first()
    local left = queue.leave()
    if joins and left then
      queue.pass_on(true)
    elseif joins then
      queue.pass_unblocked()
    elseif first and left then
      pass_free()
    end
    return left
  end

  -- Removes the entry of a client that stops waiting, or whose hold has expired before its release came: nothing else
  -- passes on the free lock.
  function queue.withdraw(joins)
    if not queue.step_back(joins) and not joins and #entries > 0 then
      pass_free()
    end
  end

  -- Adds an entry for the client, or confirms the one that it has; last: at the end of the queue. busy: it
  -- wants several locks, of which another is not free, so that a renewed reservation would keep this one
  -- free in vain.
  function queue.enter(wanted, last, busy)
    local old = mine and not mine.gone and mine
    if wanted == '' or old and tonumber(old.term) > queue.term(wanted) then
      return -- it does not wait, or this is a late command
    end
    local seen = string.format('%.0f', now)
    old = not last and old
    local text = (old and old.arrived or seen) .. ' ' .. seen .. ' ' .. wanted
    if string.sub(text, -1) == 'r' then
      local kept = old and old.kept or '0'
      text = string.sub(text, 1, -2) .. (kept == '-' and not busy and '0' or kept)
    end
    entered = tonumber(string.match(wanted, '^%d+'))
    if mine and not mine.gone then
      count(mine.ttl, -1) -- the TTL of the old entry
    end
    set(client, text)
  end

  -- Reports whether the client has an entry.
  function queue.has_entry()
    return mine and not mine.gone
  end

  -- Reports whether the client may take the free lock; shared: together with readers that get it before;
  -- outside: the client waits as a foreign client. If the lock is left to others, rest is for how many ms.
  function queue.may_take(shared, notified, outside)
    asker = mine
    if open and open > now then
      if outside then
        return true
      elseif notified ~= '1' then
        return false, math.ceil((open - now) / 1000)
      end
      open = nil
      drop('open')
    end
    local first = reserving()
    if first and tonumber(first.kept) > 0 and now >= kept_until(first) then
      keep(first, '-') -- the holder of another lock of that MultiLock may wait for this one
    end
    local passed = ahead() and pass_found()
    first = passed == nil and reserving()
    if first then
      return false, math.max(math.ceil((kept_until(first) - now) / 1000), 1)
    end
    return not passed or shared and passed == '1' and not ahead(true)
  end

  -- Reports whether the client may join the readers that hold the lock. If so, the script passes the lock
  -- on to the readers before and behind it too.
  function queue.may_join()
    asker = mine
    return not ahead(true)
  end

  -- Decides whether the client may take a lock that it does not hold. free: the lock is free. joins: the
  -- client wants to share it; if it is not free, with the readers that hold it. notified: "1" if the client
  -- was notified of a release since it was last refused. Reports whether it may; if not, it adds the entry,
  -- and rest is for how many ms the free lock is left to others.
  function queue.claim(free, joins, notified, entry)
    local may, rest
    if free then
      may, rest = queue.may_take(joins, notified, string.match(entry, ' 0$'))
    else
      may = joins and queue.may_join()
    end
    if open and not rest and not (free and may) then
      open = nil -- a foreign client has had the lock
      drop('open')
    end
    if may then
      queue.leave()
      return true
    end
    if joins and not free then
      queue.pass_unblocked()
    end
    queue.enter(entry)
    return false, rest
  end

  -- Returns the number of entries of other clients that listen or reserve. Checks that the first of them
  -- still listens.
  function queue.length()
    local entry, i = from(1)
    while entry and entry == mine do
      entry, i = from(i + 1)
    end
    local n = 0
    for _, other in ipairs(entries) do
      local counts = other.listens
      if other.kept then
        counts = other.kept ~= '-'
      end
      if other ~= mine and counts and not other.gone then
        n = n + 1
      end
    end
    return n
  end

  -- Returns the number of foreign clients that wait: entries that do not listen, and subscribers of the
  -- lock's channel that do not use the queue. Clients that use it also subscribe to a second channel.
  function queue.foreign_clients()
    local foreign = 0
    for _, other in ipairs(entries) do
      if other ~= mine and not other.listens and not other.kept and not other.gone then
        foreign = foreign + 1
      end
    end
    if sees_subscribers then
      local n = redis.call('PUBSUB', 'NUMSUB', channel, 'lockkeeper_waiters' .. of_lock)
      foreign = foreign + math.max(n[2] - n[4], 0)
    end
    return foreign
  end

  -- Passes on a lock that has just become free, or leaves it to foreign clients: in proportion, or
  -- if that is forced, or at the beginning of every period, since some of them cannot be seen. length and
  -- foreign are the numbers of both. yields: the holder wants the lock again. Reports whether the lock was
  -- transferred, and whether it is left to foreign clients.
  function queue.hand_over(length, foreign, yields, forced)
    local due = length > 0 and every > 0 and now / 1000 % every < math.min(open_time, every / 100)
    if forced or due or foreign > 0 and (length > 0 or yields) and turns * foreign >= length then
      open = now + open_time * 1000
      set('open', string.format('%.0f', open))
      if turns > 0 then
        drop('turns')
      end
      return false, true
    elseif length > 0 and foreign > 0 then
      turns = turns + 1
      set('turns', string.format('%.0f', turns))
    end
    return queue.pass_on() ~= nil, false
  end

  return queue
end
