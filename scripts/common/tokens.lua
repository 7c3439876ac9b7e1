-- Common part of the scripts that draw fencing tokens.

--- include common/number.lua

-- Draws n tokens from a counter, all above a number that a client has had, and returns the last. A
-- counter below that number is first set to it. Returns nil, without a change, if the key is not a
-- counter, or has too few tokens left.
local function try_draw(counter, n, above)
  local token = redis.pcall('INCRBY', counter, n)
  if type(token) == 'number' then
    if token >= n and math.max(token, above + n) <= MAX_NUMBER then
      if token < above + n then
        token = redis.call('INCRBY', counter, string.format('%.0f', above + n - token))
      end
      return token
    end
    redis.call('INCRBY', counter, -n)
    return nil
  end
  for _, words in ipairs({'ERR value is not an integer', 'ERR increment or decrement would overflow', 'WRONGTYPE'}) do
    if string.find(token.err, '^' .. words) then
      return nil
    end
  end
  return redis.call('INCRBY', counter, n) -- fails the script with the same error
end

-- Draws tokens in the same way, and fails the script where try_draw returns nil.
local function draw_tokens(counter, n, above)
  n, above = tonumber(n), tonumber(above) or 0
  local token = try_draw(counter, n, above)
  if token then
    return token
  end
  local ok, value = pcall(text_of, counter)
  if not ok then
    value = '' -- it is of another type
  end
  local had = above > 0 and ', this process has had ' .. string.format('%.0f', above) or ''
  refuse_value(counter, value or '0', 'a counter of fencing tokens goes from 0 to ' ..
    string.format('%.0f', MAX_NUMBER) .. had ..
    '; set it to the last token that was given out, or delete it if tokens may begin again')
end
