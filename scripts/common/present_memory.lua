-- Common part of the scripts that must know whether a server has forgotten something.

-- Returns the prefix of the name of the server's present memory: "<run id>:<replication id>:". Both are the server's
-- own, and no data brings them back: the first is new at each start, and the second at each promotion.
local function present_memory()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') .. ':' ..
    string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)') .. ':'
end
