-- The third part of the wait queue: the entries in their order. See wait_queue_entries.lua.

--- include common/other_keys.lua
--- include common/wait_queue_entries.lua
--- include common/wait_queue_read.lua

-- How many entries are read at a time at most.
local MAX_AT_ONCE = 100

-- Adds the order of the entries to a queue that was read.
local function add_order(queue)
  local entries, more, at_once -- the entries that count, as far as they were read; how many are read next
  local known = {} -- the entries that were read, by their clients
  local asker -- the client's own entry, while it asks for the lock

  local function start_over()
    entries, more, at_once = {}, true, 1
  end
  start_over()

  -- Returns the client's own entry if it counts, but the sorted set does not have it in its order.
  local function own_unordered()
    local mine = queue.mine
    if mine and not mine.gone and (mine == asker or mine.is_new) and (mine.is_new or not is_ordered(mine)) then
      return mine
    end
  end

  -- Reads an entry. One that is garbage, or from before the clock was set back, is removed.
  local function read(name)
    local text = call_if_here('HGET', queue.key, name)
    known[name] = text and parse_entry(name, text, queue.now) or nil
    if not text then
      call_if_here('ZREM', queue.order, name)
    elseif not known[name] then
      queue.drop(name)
    end
    return known[name]
  end

  -- Reads the next entries.
  local function read_more()
    local stay, own = 0, own_unordered()
    for _, entry in ipairs(entries) do
      own = own ~= entry and own
      stay = stay + (not entry.gone and not entry.is_new and is_ordered(entry) and 1 or 0)
    end
    local members = call_if_here('ZRANGE', queue.order, 0, '+inf', 'BYSCORE', 'LIMIT', stay, at_once) or {}
    more = #members == at_once
    at_once = math.min(4 * at_once, MAX_AT_ONCE)
    for _, name in ipairs(members) do
      local entry = name == queue.client and queue.mine or known[name] or read(name)
      if entry then
        if own and is_before(own, entry) then
          entries[#entries + 1], own = own, nil
        end
        entries[#entries + 1] = entry
      end
    end
    if own and not more then
      entries[#entries + 1] = own
    end
  end

  -- Returns the i-th of the entries that count. Most scripts need only the first.
  function queue.entry_at(i)
    while not entries[i] and more do
      read_more()
    end
    return entries[i]
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
