-- Common part of the scripts about the whereabouts of a singleton.

-- How long a field may be: a longer one is another application's.
local MAX_READ = 4000000

-- Returns the fields "at" and "left", each "" if it is missing. Fails if the hash belongs to another application.
local function read_whereabouts(key)
  local fields, texts = redis.call('HLEN', key), {}
  for i, field in ipairs({'at', 'left'}) do
    texts[i] = redis.call('HSTRLEN', key, field) <= MAX_READ and redis.call('HGET', key, field) or ''
    if string.find(texts[i], '^%d+ ') then
      fields = fields - 1
    end
  end
  if fields > 0 then
    error('WRONGTYPE the key belongs to another application: expected the whereabouts of a singleton', 0)
  end
  return texts[1], texts[2]
end
