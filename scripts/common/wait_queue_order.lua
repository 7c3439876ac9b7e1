-- The second part of the wait queue: the entries in their order. See wait_queue_entries.lua.

-- How many entries are read at a time at most.
local MAX_AT_ONCE = 100

-- Adds the places to a queue that was read.
local function add_places(queue)
  local places, more, at_once -- the entries that count, as far as they were read; how many are read next
  local known = {} -- the entries that were read, by their clients
  local asker -- the client's own entry, while it asks for the lock

  local function start_over()
    places, more, at_once = {}, true, 1
  end
  start_over()

  -- Returns the client's own entry if it counts, but has no place in the sorted set.
  local function own_without_place()
    local mine = queue.mine
    if mine and not mine.gone and (mine == asker or mine.is_new) and (mine.is_new or not has_place(mine)) then
      return mine
    end
  end

  -- Reads an entry. One that is garbage, or from before the clock was set back, is removed.
  local function read(name)
    local text = beside('HGET', queue.key, name)
    known[name] = text and parse_entry(name, text, queue.now) or nil
    if not text then
      beside('ZREM', queue.order, name)
    elseif not known[name] then
      queue.drop(name)
    end
    return known[name]
  end

  -- Reads the next entries.
  local function read_more()
    local stay, own = 0, own_without_place()
    for _, entry in ipairs(places) do
      own = own ~= entry and own
      stay = stay + (not entry.gone and not entry.is_new and has_place(entry) and 1 or 0)
    end
    local members = beside('ZRANGE', queue.order, 0, '+inf', 'BYSCORE', 'LIMIT', stay, at_once) or {}
    more = #members == at_once
    at_once = math.min(4 * at_once, MAX_AT_ONCE)
    for _, name in ipairs(members) do
      local entry = name == queue.client and queue.mine or known[name] or read(name)
      if entry then
        if own and is_before(own, entry) then
          places[#places + 1], own = own, nil
        end
        places[#places + 1] = entry
      end
    end
    if own and not more then
      places[#places + 1] = own
    end
  end

  -- Returns the i-th of the entries that count. Most scripts need only the first.
  function queue.place_at(i)
    while not places[i] and more do
      read_more()
    end
    return places[i]
  end

  -- From now on, the client asks for the lock.
  function queue.ask()
    if asker ~= queue.mine then
      asker = queue.mine
      start_over()
    end
  end
  function queue.asks(entry)
    return entry == asker
  end

  -- Gives the client an entry that is not in Redis yet.
  function queue.add(entry)
    queue.mine = entry
    start_over()
  end
end
