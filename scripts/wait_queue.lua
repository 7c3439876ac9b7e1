-- Common part of the scripts that know the line of processes that wait for a lock; it is put
-- before each of them, behind take.lua and beside.lua.
--
-- The line is a hash beside the lock's, which Redisson does not know:
--
--   client uuid -> "<arrived> <seen> <ttl> <term> <seq> <mode> <tokens> <listens>[ <kept>]"
--                  the place of a client: when it came and when it was last heard of (epoch, µs);
--                  for how many ms it keeps its place then, and a transfer to it lasts; the term
--                  under which it waits; the command that took or confirmed the place; the mode
--                  ("0" exclusive, "1" shared); how many fencing tokens a transfer draws for it;
--                  and "1" if it listens. The place of a MultiLock reserves the lock: it gets no
--                  transfer, but a free lock is kept for it while it is the first, since <kept>;
--                  "0" not yet, and "-" no longer, since that has lasted too long
--   open        -> until when (epoch, µs) the free lock is left to clients outside the line
--   turns       -> how many transfers there were since it was last left to them, while any waited
--
-- Any other field or value is garbage, and is removed.
--
-- A script has a place in its ARGV as "<ttl> <term> <seq> <mode> <tokens> <listens>", with " r"
-- behind it if it reserves the lock, and "" for none; and the settings as "<open time> <sees>
-- <period>": for how many ms a lock is left to others, "1" if the server is alone, and so knows all
-- subscribers, and the ms from one time to the next that it is left to those who are not seen (0:
-- never). Clients may differ in their TTL, and trust a transfer for their own.
--
-- Most lines are empty. A script asks entries_of, and goes on to line_of only if it must, so that
-- an empty line costs one command.

-- True in a cluster with sharded pub/sub: the server knows all subscribers of the lock's channels,
-- and each lock has a turn channel of its own for each client, since that must have the lock's slot.
local SHARDED = false

-- Returns the fields and values of a line, or nil if it is not here; see beside.lua. One with more fields than may be
-- read is none.
local function entries_of(key)
  local n = beside('HLEN', key)
  if not n or n == 0 then
    return n and {}
  elseif n > MOST_IN_LINE then
    error('WRONGTYPE the wait queue of the lock has ' .. n .. ' fields, more than ' .. MOST_IN_LINE, 0)
  end
  return beside('HGETALL', key)
end

-- Opens a line. fields are what entries_of has returned, owner is the one that the command is about,
-- and counter the key of the lock's tokens, "" if it has none. give(owner, mode, ttl, joins)
-- makes a waiter the owner of the lock, which is free, or, with joins, held by readers.
local function line_of(fields, key, settings, hash, owner, counter, give)
  local clock = redis.call('TIME')
  local now = clock[1] * 1000000 + clock[2]
  local open_time, alone, every = string.match(settings, '^(%d+) ([01]) (%d+)$')
  open_time, every = tonumber(open_time), tonumber(every)
  local sees, of_lock = SHARDED or alone == '1', string.sub(key, #'lockkeeper_wait_queue' + 1)
  local client, number = string.match(owner, '^([^:]*):?(%d*)')
  local line, places, mine, open, turns = {}, {}, nil, nil, 0
  local entered = 0 -- the TTL of the place that the client has taken by now
  local asker -- the client's own place, while it asks for the lock

  -- How many places there are with each TTL: there may be many places, and few differ in it.
  local ttls = {}
  local function count(ttl, n)
    ttls[ttl] = (ttls[ttl] or 0) + n
  end
  -- The longest TTL of a place; 0 if nobody stands in the line.
  local function longest()
    local most = entered
    for ttl, n in pairs(ttls) do
      most = n > 0 and math.max(most, ttl) or most
    end
    return most
  end
  -- How long the line lasts: soon nothing is left of one in which nobody stands.
  local function lasts()
    local ttl = longest()
    return ttl > 0 and ttl or open_time + 1000
  end
  -- What is out of reach stays as it is.
  local function drop(field)
    beside('HDEL', key, field)
    if longest() > 0 or open or turns > 0 then
      beside('PEXPIRE', key, lasts())
    end
  end
  -- Reports whether all of the lock's keys are here. A server that is alone has no slots to move.
  local function whole()
    return alone == '1' or beside('EXISTS', hash, key)
  end
  local function turns_of(place)
    return 'lockkeeper_turn:' .. place.client .. (SHARDED and of_lock or '')
  end
  local function remove(place)
    place.gone = true
    count(place.ttl, -1)
    drop(place.client)
  end
  -- A server out of memory keeps nothing; who has no place then polls.
  local function set(field, value)
    if not fields[1] and not whole() then
      return -- a new key here would stop the move of the old one
    end
    local ok, problem = pcall(take, key, lasts(), field, value)
    local text = not ok and (type(problem) == 'table' and problem.err or tostring(problem))
    if text and not string.find(text, 'OOM', 1, true) and not string.find(text, 'non local key', 1, true) then
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
      local is_place = arrived and #arrived <= 17 and #seen <= 17 and #ttl <= 13 and #term <= 20 and #seq <= 20 and #tokens <= 9
        and (kept == '' or kept == '-' or is_number(kept, 17))
      -- A clock that was set back must not keep a place for long.
      if is_place and math.abs(now - seen) < ttl * 1000 then
        local place = {
          client = field, text = text, arrived = arrived, ttl = tonumber(ttl), term = term, seq = seq, mode = mode,
          tokens = tokens, listens = listens == '1', kept = kept ~= '' and kept,
        }
        places[#places + 1] = place
        count(place.ttl, 1)
        if field == client then
          mine = place
        end
      else
        beside('HDEL', key, field)
      end
    end
  end
  if #places > 1 then
    table.sort(places, function(a, b)
      local x, y = tonumber(a.arrived), tonumber(b.arrived)
      return x < y or x == y and a.client < b.client
    end)
  end

  -- Reports whether a place counts. Those who do not listen yet get no transfer, and keep nobody
  -- waiting. Who does not listen any more loses its place.
  local function counts(place)
    if place == asker or place.kept then
      return place == asker or place.kept ~= '-'
    elseif place.listens and not place.heard and sees then
      place.heard = redis.call('PUBSUB', 'NUMSUB', turns_of(place))[2] > 0
      if not place.heard then
        remove(place)
      end
      return place.heard
    end
    return place.listens
  end

  -- Returns the first place from the i-th on that counts, and which it is.
  local function from(i)
    for j = i, #places do
      if not places[j].gone and counts(places[j]) then
        return places[j], j
      end
    end
  end

  -- Returns the first place if it is that of a MultiLock, which does not ask.
  local function reserving()
    local place = from(1)
    return place and place ~= asker and place.kept and place
  end
  local function kept_until(place)
    return place.kept + place.ttl * 500
  end
  local function keep(place, since)
    place.kept = since
    set(place.client, place.text .. ' ' .. since)
  end

  -- Reports whether somebody is before the client that asks; exclusive: somebody who does not want
  -- to share.
  local function ahead(exclusive)
    local place, i = from(1)
    while place and place ~= asker do
      if place.mode == '0' or place.kept or not exclusive then
        return true
      end
      place, i = from(i + 1)
    end
    return false
  end

  -- Makes a waiter the owner. Reports whether it has: not while the slot is being moved, since the
  -- hash cannot be made again on the old server, and the counter may be on the other; and not if another
  -- application has put something into the hash.
  local function transfer(place, joins)
    if not joins and (not whole() or beside('EXISTS', hash) == 1) then
      return false
    end
    local token = 0
    if place.tokens ~= '0' then
      -- Without a token, the waiter draws one itself, and is told what is wrong with the counter.
      token = try_draw(counter, tonumber(place.tokens), 0) or 0
      if token > 0 then
        redis.call('PERSIST', counter)
      end
    end
    remove(place)
    give(place.client .. ':' .. place.term, place.mode, place.ttl, joins)
    local message = place.term .. ' ' .. place.seq .. ' ' .. string.format('%.0f', token) .. ' ' .. hash -- a %s ends at a NUL byte
    redis.call('PUBLISH', turns_of(place), message)
    return true
  end

  -- Gives the lock to those whose turn it is: to the first, or to all readers before the first who
  -- does not want to share. joins: readers hold the lock. asks: the client asks for the lock, and gets
  -- it from the script itself. Returns the mode in which the lock is held then, nil if nobody got it.
  function line.pass_on(joins, asks)
    local passed
    asker = asks and mine or asker
    local place, i = from(1)
    while place do
      local exclusive = place.mode == '0' and place.listens
      if place.kept or exclusive and (place == asker or joins or passed) or place ~= asker and not transfer(place, joins or passed) then
        break
      elseif place ~= asker then
        passed = place.mode
      end
      if passed == '0' then
        break
      end
      place, i = from(i + 1)
    end
    local first = not joins and not passed and reserving()
    if first and first.kept == '0' then
      keep(first, string.format('%.0f', now))
    end
    return passed
  end

  -- Returns the term of a place that a client wants.
  function line.term(wanted)
    return tonumber(string.match(wanted, '^%d+ (%d+)'))
  end

  -- Takes the client out of the line, unless it waits under a later term. Reports whether it has.
  function line.leave(term)
    if not mine or mine.gone or tonumber(mine.term) > tonumber(term or number) then
      return false
    end
    remove(mine)
    return true
  end

  -- Takes a client that does not hold the lock out of the line. If the free lock was kept for it, the
  -- next client gets it. Reports whether that lock stays free, since none can get a transfer.
  function line.give_way()
    local reserved = mine and mine.kept
    return line.leave() and reserved and not (open and open > now) and redis.call('EXISTS', hash) == 0 and not line.pass_on()
  end

  -- Does the same for good. The release of a lock that stays free is published.
  function line.give_up(channel)
    if line.give_way() then
      redis.call('PUBLISH', channel, '0')
    end
  end

  -- Gives the client a place, or confirms the one that it has; last: at the end of the line. busy:
  -- it wants several locks, of which another is not free, so that a reservation that has lapsed
  -- would keep this one free in vain.
  function line.enter(wanted, last, busy)
    local old = mine and not mine.gone and mine
    if wanted == '' or old and tonumber(old.term) > line.term(wanted) then
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
      count(mine.ttl, -1) -- that was the old one's
    end
    set(client, text)
  end

  -- Reports whether the client has a place.
  function line.has()
    return mine and not mine.gone
  end

  -- Reports whether it is the client's turn to take the free lock; shared: with those who get it
  -- before; outside: it waits, and hears of no transfer. If the lock is left to others, rest is for how
  -- many ms.
  function line.may_take(shared, heard, outside)
    asker = mine
    if open and open > now then
      if outside then
        return true
      elseif heard ~= '1' then
        return false, math.ceil((open - now) / 1000)
      end
      open = nil
      drop('open')
    end
    local first = reserving()
    if first and tonumber(first.kept) > 0 and now >= kept_until(first) then
      keep(first, '-') -- its user may hold another of its locks, and wait for this one
    end
    local passed = ahead() and line.pass_on()
    first = passed == nil and reserving()
    if first then
      return false, math.max(math.ceil((kept_until(first) - now) / 1000), 1)
    end
    return not passed or shared and passed == '1' and not ahead(true)
  end

  -- Reports whether the client may read together with those who do. Readers before and behind it may,
  -- too: the script passes the lock on to them when the client has it.
  function line.may_join()
    asker = mine
    return not ahead(true)
  end

  -- Decides whether the client may take a lock that it does not hold. free: nobody holds it. joins:
  -- the client wants to share it; if it is not free, with the readers that hold it. heard: "1" if
  -- the client was told since that the lock is free. Reports whether it may; if not, it takes its
  -- place, and rest is for how many ms the free lock is left to others.
  function line.claim(free, joins, heard, place)
    local may, rest
    if free then
      may, rest = line.may_take(joins, heard, string.match(place, ' 0$'))
    else
      may = joins and line.may_join()
    end
    if open and not rest and not (free and may) then
      open = nil -- others have had their turn
      drop('open')
    end
    if may then
      line.leave()
      return true
    end
    line.enter(place)
    return false, rest
  end

  -- Returns how many other clients have a place, and listen or reserve. The first of them is there.
  function line.length()
    local place, i = from(1)
    while place and place == mine do
      place, i = from(i + 1)
    end
    local n = 0
    for _, other in ipairs(places) do
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

  -- Returns how many clients wait that can get no transfer: those in the line that hear of none,
  -- and those that do not know it and listen on the lock's channel. Those that know the line are on a
  -- second channel besides.
  function line.strangers(channel)
    local strangers = 0
    for _, other in ipairs(places) do
      if other ~= mine and not other.listens and not other.kept and not other.gone then
        strangers = strangers + 1
      end
    end
    if sees then
      local n = redis.call('PUBSUB', 'NUMSUB', channel, 'lockkeeper_waiters' .. of_lock)
      strangers = strangers + math.max(n[2] - n[4], 0)
    end
    return strangers
  end

  -- Passes on a lock that has just become free, or leaves it to those outside the line: in
  -- proportion, or because that is forced, or at the beginning of every so many ms, since some of
  -- them cannot be seen. length and strangers are the numbers of both. yields: its holder wants it
  -- again. Reports whether somebody has the lock, and whether it is left to those.
  function line.hand_over(length, strangers, yields, forced)
    local due = length > 0 and every > 0 and now / 1000 % every < math.min(open_time, every / 100)
    if forced or due or strangers > 0 and (length > 0 or yields) and turns * strangers >= length then
      open = now + open_time * 1000
      set('open', string.format('%.0f', open))
      if turns > 0 then
        drop('turns')
      end
      return false, true
    elseif length > 0 and strangers > 0 then
      turns = turns + 1
      set('turns', string.format('%.0f', turns))
    end
    return line.pass_on() ~= nil, false
  end

  return line
end
