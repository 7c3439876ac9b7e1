-- Common part of the scripts that read the record of a client's last command.
--
-- The record is "<number> <reply>": the number of the command, and the numbers of its reply, with spaces between them.

-- The length of the longest record: it has few numbers, of at most 20 digits each. A longer value is another
-- application's, and may be large.
local MAX_REMEMBERED = 100

-- Returns the number and the reply of a record, and its text, which is "" if there is no record. The first two are nil
-- if the text is not a record's.
local function read_record(record)
  local text = redis.call('GETRANGE', record, 0, MAX_REMEMBERED)
  local number, reply = string.match(text, '^(%d+)(.*)$')
  if not number or string.gsub(reply, ' %-?%d+', '') ~= '' or #text > MAX_REMEMBERED then
    return nil, nil, text
  end
  return number, reply, text
end
