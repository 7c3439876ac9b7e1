-- Sets how many permits there are.
--
-- KEYS[1]  the permits that are free, a string
-- KEYS[2]  the permits that are taken, a sorted set: id, 16 bytes -> when it expires, in epoch ms
-- KEYS[3]  the record of the client's last command
-- KEYS[4]  when a waiting "restore" may be carried out, in epoch ms. Its TTL ends later. It is deleted when
--          the number is set, so that each loss has its own wait
-- ARGV[1]  the number of the command
-- ARGV[2]  the channel, on which the number is published if it is positive
-- ARGV[3]  "try": sets the number if there are no permits yet; "set": sets the number of free and taken
--          permits together, also in place of a number that is refused;
--          "add": adds the number, which may be negative; "restore": as "try", but only after
--          the leases of permits that were taken before Redis lost its data are over
-- ARGV[4]  the number
-- ARGV[5]  for "restore", how long these leases are, ms
-- ARGV[6…] for "restore", the rest of the lease in ms and the id of each permit that the client still
--          trusts: it stays taken
--
-- Reply: 1; 0 if there are permits already; or minus the ms that a restore must still wait
return once(KEYS[3], ARGV[1], function()
  local how, number = ARGV[3], tonumber(ARGV[4])
  check_taken(KEYS[2])
  local now, at = epoch_ms(), text_of(KEYS[4])
  local rest = at and (exactly(at) or math.huge) - now
  local ends = at and redis.call('PTTL', KEYS[4])
  if at and (ends < 0 or rest > ends or rest < -now / 2) then -- no such time is before 1990
    refuse_value(KEYS[4], at, 'when the number of permits is set again is a recent time, or one before the end of this key; delete it')
  end
  local function restored()
    if at then
      redis.call('DEL', KEYS[4])
    end
  end
  local value = how == 'set' and text_of(KEYS[1])
  if value and is_number(value) and not pcall(count_of, KEYS[1]) then
    local left = number - redis.call('ZCOUNT', KEYS[2], 0, '+inf')
    if number > 0 then
      redis.call('PUBLISH', ARGV[2], number)
    end
    return {1}, function()
      restored()
      redis.call('SET', KEYS[1], left, 'KEEPTTL')
    end
  end
  local free, more = count_of(KEYS[1]), number
  if free and (how == 'try' or how == 'restore') then
    return {0}, restored
  elseif free and how == 'set' then
    more = number - free - redis.call('ZCOUNT', KEYS[2], 0, '+inf')
  end
  if how == 'restore' then
    rest = rest or tonumber(ARGV[5])
    if rest > 0 then
      return {-rest}, not at and function()
        redis.call('SET', KEYS[4], string.format('%.0f', now + rest), 'PX', 2 * ARGV[5])
      end
    end
    more = number - redis.call('ZCOUNT', KEYS[2], 0, '+inf')
    for i = 7, #ARGV, 2 do
      more = more - (redis.call('ZSCORE', KEYS[2], ARGV[i]) and 0 or 1)
    end
  end
  if free and more == 0 then
    return {1}
  end
  check_permits((free or 0) + more)
  if number > 0 then
    redis.call('PUBLISH', ARGV[2], number)
  end
  return {1}, function()
    restored()
    for i = 6, #ARGV, 2 do
      redis.call('ZADD', KEYS[2], 'NX', now + ARGV[i], ARGV[i + 1])
    end
    redis.call('INCRBY', KEYS[1], more)
  end
end)
