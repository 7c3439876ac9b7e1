-- Common part of the scripts that add or subtract, so that they must not have their effect twice;
-- it is put before each of them.
--
-- A client numbers the commands that it sends about a key. It has one of them outstanding, and
-- repeats that one, under its number, until it knows the reply. What its last command was, and the
-- reply, stands in a key beside, "<number> <reply>", in which the reply is numbers with spaces
-- between them. A command that was carried out gets that reply again and does nothing. A command
-- that comes after a later one is late: nobody waits for its reply any more, and it fails, unless it
-- cannot have its effect twice anyway.
--
-- The key lasts for an hour after the client's last command. So a client must not repeat a command
-- for longer than that.

-- Carries out a command, unless it was carried out before. decide() reads, publishes, and returns
-- the reply, a list of numbers, and change(), which does all the rest that writes; nil if there is
-- nothing. Whatever is refused before change() has changed nothing, and what change() is refused it
-- must take back itself. With late, a late command is carried out, and not remembered.
local function once(record, number, decide, late)
  local keep = 3600000
  local before = redis.call('GET', record) or '0'
  local last, said = string.match(before, '^(%d+) ?(.*)$')
  if last == number then
    redis.call('PEXPIRE', record, keep) -- replicas that have this write have those of the first time
    local reply = {}
    for n in string.gmatch(said, '-?%d+') do
      table.insert(reply, tonumber(n))
    end
    return reply
  end
  local is_late = tonumber(last) > tonumber(number)
  if is_late and not late then
    error('LATE the client has sent another command since', 0)
  end
  local reply, change = decide()
  redis.call('PEXPIRE', record, keep) -- a server out of memory refuses no write after the first
  redis.call('SET', record, is_late and before or number .. ' ' .. table.concat(reply, ' '), 'PX', keep)
  if change then
    local ok, problem = pcall(change)
    if not ok then
      redis.call('SET', record, before, 'PX', keep)
      error(problem, 0)
    end
  end
  return reply
end

-- Returns the count that a key has, or nil if there is none.
local function count_of(key)
  local count = redis.call('GET', key)
  if count and not string.match(count, '^-?%d+$') then
    error('WRONGTYPE the value of ' .. key .. ' is no count', 0)
  end
  return count and tonumber(count)
end
