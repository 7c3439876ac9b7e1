-- Common part of the scripts of the semaphore: the processes that wait for permits. The keys and the entries have the
-- form of a lock's wait queue.
--
-- The field <tokens> of an entry says how many permits the first waiter of its process wants; its <mode> is "0". No
-- permits are transferred: they have no lease, so a process that died would take them with it. Entries only say which
-- processes to wake, and which permits to leave to them: the free permits are for the first entries, as far as they
-- suffice. So each release wakes as many processes as it serves, and each process gets its turn.

--- include common/take.lua
--- include common/other_keys.lua
--- include common/counts.lua
--- include common/wait_queue_entries.lua

-- How many processes a script wakes at most. Others find out by themselves.
local MAX_WOKEN = 1000

-- How many entries are read at a time.
local AT_ONCE = 8

-- Opens the wait queue of a semaphore for a client; nil if it is not all here. In the result, size is the number of
-- entries that listen, own is how many of them are the client's (0 or 1), and mine is the text of its entry. dropped
-- says that an entry has gone, so that the entries behind it have moved up.
local function open_queue(semaphore, key, settings, client)
  local order = order_of(key)
  local members, one_server = call_if_here('ZCARD', order), has_one_server(settings)
  if not members or members > 0 and not one_server and not call_if_here('EXISTS', key, order) then
    return nil -- while a slot is moved, one of the two may be on the other server
  end
  local size = members > 0 and call_if_here('ZCOUNT', order, 0, '+inf') or 0
  local mine = members > 0 and call_if_here('HGET', key, client)
  return {
    semaphore = semaphore, key = key, order = order, client = client,
    one_server = one_server, sees_subscribers = SHARDED or one_server,
    size = size, own = mine and string.find(mine, ' 1$') and 1 or 0, mine = mine, dropped = false,
  }
end

-- Returns the time (epoch, µs), the same one for the whole script.
local function time_of(queue)
  if not queue.now then
    local clock = redis.call('TIME')
    queue.now = clock[1] * 1000000 + clock[2]
  end
  return queue.now
end

-- Removes the entry of a client.
local function remove(queue, client)
  call_if_here('HDEL', queue.key, client)
  call_if_here('ZREM', queue.order, client, '-' .. client)
end

-- Reports whether the client of an entry is this one, or may still hear that its turn has come.
local function is_reachable(queue, entry)
  return entry.client == queue.client or not queue.sees_subscribers
    or redis.call('PUBSUB', NUMSUB, turn_channel(queue.key, entry))[2] > 0
end

-- Calls visit(entry, wants) with the entries that listen, in their order, until it returns true. wants is for how many
-- permits an entry waits. Removes the entries of clients that have gone.
local function visit_entries(queue, visit)
  local visited = 0
  repeat
    local names = call_if_here('ZRANGE', queue.order, 0, '+inf', 'BYSCORE', 'LIMIT', visited, AT_ONCE) or {}
    local texts = names[1] and call_if_here('HMGET', queue.key, unpack(names)) or {}
    for i, name in ipairs(names) do
      local entry = texts[i] and parse_entry(name, texts[i], time_of(queue))
      if not entry or not is_reachable(queue, entry) then
        remove(queue, name)
        queue.size = queue.size - 1
        if name == queue.client then
          queue.own, queue.mine = 0, nil
        end
        queue.dropped = queue.dropped or texts[i] and true -- without a text, it had no place
      elseif visit(entry, math.max(entry.tokens, 1)) then
        return
      else
        visited = visited + 1
      end
    end
  until #names < AT_ONCE
end

-- Returns how many of the free permits are left to processes that have waited for longer than this one.
local function reserved_in(queue, free)
  local sum = 0
  if queue.size > queue.own then
    visit_entries(queue, function(entry, wants)
      local mine = entry.client == queue.client
      sum = mine and sum or sum + wants
      return mine or sum >= free
    end)
  end
  return math.min(sum, free)
end

-- Wakes the processes for which the free permits suffice now, and did not suffice before, when there were so many; also
-- the others if an entry before them has gone.
local function wake_up(queue, before, free)
  local sum, woken = 0, 0
  if queue.size > 0 and free > 0 then
    visit_entries(queue, function(entry, wants)
      sum = sum + wants
      if sum <= free and (sum > before or queue.dropped) then
        redis.call(PUBLISH, turn_channel(queue.key, entry), entry.term .. ' 0 0 ' .. queue.semaphore)
        woken = woken + 1
      end
      return sum >= free or woken >= MAX_WOKEN
    end)
  end
end

-- Removes the client's entry, and remembers how many permits it wanted.
local function leave(queue)
  if queue.mine then
    remove(queue, queue.client)
    queue.wanted = tonumber(string.match(queue.mine, ' (%d+) %d$')) or MAX_PERMITS
    queue.size, queue.own, queue.mine, queue.dropped = queue.size - queue.own, 0, nil, true
  end
end

-- Removes the entries that have expired: visit_entries finds only the ones that listen.
local function remove_expired(queue)
  local expired = call_if_here('ZRANGE', queue.order, -time_of(queue), '(0', 'BYSCORE', 'LIMIT', 0, 1000) or {}
  for _, member in ipairs(expired) do
    remove(queue, string.sub(member, 2))
    queue.dropped = true
  end
end

-- Reports whether all keys are here. A new key would stop the move of a slot.
local function all_here(queue)
  return queue.one_server or queue.size > 0 or call_if_here('EXISTS', queue.semaphore, queue.key, queue.order)
end

-- Adds an entry for the client at the end, or confirms the one that it has, unless the server is out of memory. An
-- entry that did not listen had no place, and an entry that no longer listens loses its place. The entries behind it
-- then move up, as they do behind an entry that wants fewer permits than before.
local function enter(queue, wanted)
  local now = time_of(queue)
  local old = queue.own == 1 and parse_entry(queue.client, queue.mine, now)
  local arrived = old and old.arrived or string.format('%.0f', now)
  local text = arrived .. ' ' .. string.format('%.0f', now) .. ' ' .. wanted
  local entry = parse_entry(queue.client, text, now)
  if not entry or not all_here(queue) then
    return
  end
  remove_expired(queue)
  local ok, problem = pcall(function()
    local ttl = math.max(entry.ttl, queue.size > 0 and call_if_here('PTTL', queue.key) or 0)
    take(queue.key, ttl, queue.client, text)
    put_in_order(queue.order, entry)
    redis.call('PEXPIRE', queue.order, ttl)
  end)
  if not ok and not string.find(words_of(problem), '^OOM ') and not is_elsewhere(problem) then
    error(problem, 0)
  end
  queue.dropped = queue.dropped or old and (not entry.listens or tonumber(entry.tokens) < tonumber(old.tokens))
end
