-- Common part of the scripts that draw fencing tokens; it is put before each of them, behind
-- number.lua.

-- Draws n tokens from a counter, all of them above a number that a client has had, and returns the
-- last. A counter that has lost some is set to that number. The script fails without a change if
-- the counter is no counter, or has no more tokens.
local function draw_tokens(counter, n, above)
  n, above = tonumber(n), tonumber(above) or 0
  local token = redis.pcall('INCRBY', counter, n)
  local counts = type(token) == 'number'
  if counts and token >= n and math.max(token, above + n) <= MOST then
    if token < above + n then
      token = redis.call('INCRBY', counter, string.format('%.0f', above + n - token))
    end
    return token
  elseif counts then
    redis.call('INCRBY', counter, -n)
  elseif not string.find(token.err, 'not an integer', 1, true) and not string.find(token.err, 'overflow', 1, true) then
    return redis.call('INCRBY', counter, n) -- fails the script with the same error
  end
  local had = above > 0 and ', this process has had ' .. string.format('%.0f', above) or ''
  refuse_value(counter, redis.call('GET', counter) or '0', 'a counter of fencing tokens goes from 0 to ' ..
    string.format('%.0f', MOST) .. had .. '; set it to the last token that was given out, or delete it if tokens may begin again')
end
