-- Common part of the scripts that know the line of processes that wait for a lock; it is put
-- before each of them, behind take.lua and beside.lua.
--
-- The line is a hash beside the lock's, which Redisson does not know:
--
--   client uuid -> "<arrived> <seen> <term> <seq> <mode> <tokens> <listens>"
--                  the place of a client: when it came and when it was last heard of (epoch, µs);
--                  the term under which it waits, the command that took or confirmed the place,
--                  the mode ("0" exclusive, "1" shared), how many fencing tokens a transfer draws
--                  for it, and "1" if it listens
--   open        -> until when (epoch, µs) the free lock is left to clients outside the line
--   turns       -> how many transfers there were since it was last left to them
--
-- A script has a place in its ARGV as "<term> <seq> <mode> <tokens> <listens>", and "" for none;
-- and the settings as "<transfer TTL> <place timeout> <open time> <sees>", all in ms, and "1" if
-- the server knows all subscribers.
--
-- Most lines are empty. A script asks HGETALL, and goes on to line_of only if it must, so that
-- an empty line costs that one command.

-- Opens a line. fields are what HGETALL has replied, owner is the one that the command is about,
-- and counter the key of the lock's tokens, "" if it has none. give(owner, mode, ttl, joins)
-- makes a waiter the owner of the lock, which is free, or, with joins, held by readers. Without
-- give, the line is only read.
local function line_of(fields, key, settings, hash, owner, counter, give)
  local clock = redis.call('TIME')
  local now = clock[1] * 1000000 + clock[2]
  local ttl, timeout, open_time, sees = string.match(settings, '^(%d+) (%d+) (%d+) ([01])$')
  local client, number = string.match(owner, '^([^:]*):?(%d*)')
  local line, places, mine, open, turns = {}, {}, nil, nil, 0

  -- The next two are the only ones that write. What is out of reach stays as it is.
  local function drop(field)
    beside('HDEL', key, field)
    beside('PEXPIRE', key, timeout)
  end
  -- A server out of memory keeps nothing; who has no place then polls.
  local function set(field, value)
    if not fields[1] and not beside('EXISTS', hash, key) then
      return -- a new key here would stop the move of the old one
    end
    local ok, problem = pcall(take, key, timeout, field, value)
    local text = not ok and (type(problem) == 'table' and problem.err or tostring(problem))
    if text and not string.find(text, 'OOM', 1, true) and not string.find(text, 'non local key', 1, true) then
      error(problem, 0)
    end
  end

  local function remove(place)
    place.gone = true
    drop(place.client)
  end

  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    if field == 'open' then
      open = tonumber(value)
    elseif field == 'turns' then
      turns = tonumber(value)
    else
      local arrived, seen, term, seq, mode, tokens, listens =
        string.match(value, '^(%d+) (%d+) (%d+) (%d+) ([01]) (%d+) ([01])$')
      -- A clock that was set back must not keep a place for long.
      if arrived and math.abs(now - seen) < timeout * 1000 then
        local place = {
          client = field, arrived = arrived, term = term, seq = seq, mode = mode, tokens = tokens, listens = listens == '1',
        }
        places[#places + 1] = place
        if field == client then
          mine = place
        end
      elseif give then
        drop(field)
      end
    end
  end
  table.sort(places, function(a, b)
    local x, y = tonumber(a.arrived), tonumber(b.arrived)
    return x < y or x == y and a.client < b.client
  end)

  -- Reports whether a transfer would be heard, as far as the server can tell. Who has gone loses
  -- its place.
  local function hears(place)
    if place.gone or not place.listens then
      return false
    end
    local channel = 'lockkeeper_turn:' .. place.client
    if sees == '1' and not place.heard and redis.call('PUBSUB', 'NUMSUB', channel)[2] == 0 then
      remove(place)
      return false
    end
    place.heard = true
    return true
  end

  -- Reports whether somebody who listens is before the client in the line; exclusive: somebody
  -- who does not want to share.
  local function ahead(exclusive)
    for _, place in ipairs(places) do
      if place == mine then
        return false
      elseif (place.mode == '0' or not exclusive) and hears(place) then
        return true
      end
    end
    return false
  end

  -- Makes a waiter the owner. Reports whether it has: not while the slot is being moved, since the
  -- hash cannot be made again on the old server, and the counter may be on the other.
  local function transfer(place, joins)
    if not joins and not beside('EXISTS', hash, key) then
      return false
    end
    local token = 0
    if place.tokens ~= '0' then
      local ends = redis.call('PTTL', counter)
      token = redis.call('INCRBY', counter, place.tokens)
      if ends >= 0 then
        redis.call('PERSIST', counter)
      end
    end
    remove(place)
    give(place.client .. ':' .. place.term, place.mode, tonumber(ttl), joins)
    local message = string.format('%s %s %.0f %s', place.term, place.seq, token, hash)
    redis.call('PUBLISH', 'lockkeeper_turn:' .. place.client, message)
    return true
  end

  -- Gives the lock to those whose turn it is: to the first, or to all readers before the first who
  -- does not want to share. joins: readers hold the lock. spare: a place that gets nothing. Returns
  -- the mode in which the lock is held then, nil if nobody got it.
  function line.pass_on(joins, spare)
    local passed
    for _, place in ipairs(places) do
      if place == spare and place.listens or hears(place) then
        if place.mode == '0' then
          if place ~= spare and not passed and not joins and transfer(place) then
            passed = '0'
          end
          break
        elseif place ~= spare and transfer(place, joins or passed) then
          passed = '1'
        end
      end
    end
    return passed
  end

  -- Takes the client out of the line, unless it waits under a later term. Reports whether it has.
  function line.leave(term)
    if not mine or mine.gone or tonumber(mine.term) > tonumber(term or number) then
      return false
    end
    remove(mine)
    return true
  end

  -- Gives the client a place, or confirms the one that it has; last: at the end of the line.
  function line.enter(wanted, last)
    if wanted == '' then
      return
    end
    local old = mine and not mine.gone and mine
    if old and tonumber(old.term) > tonumber(string.match(wanted, '^%d+')) then
      return -- a late command
    end
    local seen = string.format('%.0f', now)
    set(client, (old and not last and old.arrived or seen) .. ' ' .. seen .. ' ' .. wanted)
  end

  -- Decides whether the client may take a lock that it does not hold. free: nobody holds it. joins:
  -- the client wants to share it; if it is not free, with the readers that hold it. heard: "1" if
  -- the client was told since that the lock is free. Reports whether it may; if not, it takes its
  -- place, and rest is for how many ms the free lock is left to others.
  function line.claim(free, joins, heard, place)
    local passed, rest
    if free and open and open > now and heard ~= '1' then
      rest = math.ceil((open - now) / 1000)
    else
      if open and (not free or heard == '1') then
        drop('open') -- others have had their turn
        open = nil
      end
      if free and ahead() then
        passed = line.pass_on(false, mine)
      end
      if free and not passed or joins and passed ~= '0' and not ahead(true) then
        line.leave()
        return true
      end
    end
    line.enter(place)
    return false, rest
  end

  -- Returns how many listen in the line, without the given client. If somebody does, the first of
  -- them is there.
  function line.length(without)
    local n = 0
    for _, place in ipairs(places) do
      if place.client ~= without and place.listens and not place.gone and (n > 0 or not give or hears(place)) then
        n = n + 1
      end
    end
    return n
  end

  -- Reports whether somebody else in the line does not want to share the lock.
  function line.writer_waits()
    for _, place in ipairs(places) do
      if place ~= mine and place.mode == '0' and place.listens then
        return true
      end
    end
    return false
  end

  -- Returns how many clients outside the line wait on the lock's channel; subscribed: "1" if the
  -- client itself is on it.
  function line.strangers(channel, subscribed)
    if sees ~= '1' then
      return 0
    end
    local n = redis.call('PUBSUB', 'NUMSUB', channel)[2] - subscribed
    for _, place in ipairs(places) do
      if place.listens and not place.gone and place.client ~= client then
        n = n - 1
      end
    end
    return math.max(n, 0)
  end

  -- Passes on a lock that has just become free, or leaves it to those outside the line: in
  -- proportion, or because that is forced. length and strangers are the numbers of both. stays: the
  -- client stays in the line. Reports whether somebody has the lock.
  function line.hand_over(length, strangers, forced, stays)
    if forced or strangers > 0 and turns * strangers >= length then
      if length > 0 or stays then
        set('open', string.format('%.0f', now + open_time * 1000))
      end
      if turns > 0 then
        drop('turns')
      end
      return false
    end
    set('turns', string.format('%.0f', turns + 1))
    return line.pass_on() ~= nil
  end

  line.client = client
  return line
end
