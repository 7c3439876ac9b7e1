-- Reads or writes a record for the holder of a fenced lock, unless a later holder has
-- been here already. The highest token seen is kept in the record itself, so that both
-- lie in one slot and change together.
--
-- KEYS[1]  the record, a hash: its fields, and the highest token in the field "token"
-- ARGV[1]  the token of the caller's hold
-- ARGV[2], ARGV[3] …  fields and what to write to them; none: the caller only reads
--
-- Reply: {1, field, value, field, value …}  done, and what the record is now
--        {0, highest}                       refused: the holder of that token was here
local highest = redis.call('HGET', KEYS[1], 'token') or '0'
if tonumber(ARGV[1]) < tonumber(highest) then
  return {0, highest}
end
redis.call('HSET', KEYS[1], 'token', unpack(ARGV))
return {1, unpack(redis.call('HGETALL', KEYS[1]))}
