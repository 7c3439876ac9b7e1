-- Common part of the scripts that add or subtract, which must not have their effect twice.
--
-- A client numbers the commands that it sends about a key. It has one of them outstanding, and repeats
-- that one, under its number, until it gets the reply. Another key, the record, has its last command and the
-- reply. A command that was carried out gets that reply again and does nothing. A command that arrives after
-- a later one is late: no request waits for its reply. It fails, unless it cannot have its effect twice.
--
-- The record lasts for an hour after the client's last command. So a client must not repeat a command
-- for longer than that.

--- include common/record.lua

-- Carries out a command, unless it was carried out before. decide() reads, publishes, and changes the entries of a wait
-- queue. It returns the reply, a list of numbers, and change(), which makes all other writes; nil if there are none. An
-- error before change() leaves no other trace. change() must undo its writes if it fails. With late, a late command is
-- carried out, but not recorded.
local function once(record, number, decide, late)
  local HOUR = 3600000 -- in ms
  local last, last_reply, before = read_record(record)
  if before == '' then
    last, last_reply, before = '0', '', '0'
  elseif not last then
    error('WRONGTYPE the key of the last command has another value', 0)
  end
  if last == number then
    redis.call('PEXPIRE', record, HOUR) -- replicas that have this write have the earlier ones too
    local reply = {}
    for n in string.gmatch(last_reply, '-?%d+') do
      table.insert(reply, tonumber(n))
    end
    return reply
  end
  local is_late = tonumber(last) > tonumber(number)
  if is_late and not late then
    error('LATE the client has sent another command since', 0)
  end
  local reply, change = decide()
  local words = {number}
  for i, n in ipairs(reply) do
    words[i + 1] = string.format('%.0f', n) -- Lua would round a large one
  end
  redis.call('PEXPIRE', record, HOUR) -- a server out of memory refuses no write after the first
  redis.call('SET', record, is_late and before or table.concat(words, ' '), 'PX', HOUR)
  if change then
    local ok, problem = pcall(change)
    if not ok then
      redis.call('SET', record, before, 'PX', HOUR)
      error(problem, 0)
    end
  end
  return reply
end
