package scripts_test

import (
	"strings"
	"testing"
)

// redissonFair does to a fair lock what a Redisson client does. KEYS and ARGV are named as in the tables, then
// come the name of an operation and its arguments. nil means that the lock was taken.
const redissonFair = `
local call, hash, channel, queue, timeouts = redis.call, KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function take(owner)
  call('HINCRBY', hash, owner, 1)
  call('PEXPIRE', hash, 30000)
end

-- removes dead waiters from the head of the queue
local function clean()
  local first = call('LINDEX', queue, 0)
  while first and tonumber(call('ZSCORE', timeouts, first) or now + 1) <= now do
    call('ZREM', timeouts, first)
    call('LPOP', queue)
    first = call('LINDEX', queue, 0)
  end
  return first
end

local function shift(owners, wait)
  for _, owner in ipairs(owners) do
    call('ZINCRBY', timeouts, -wait, owner)
  end
end

local operations = {}

-- one attempt of an owner with that waiter timeout
function operations.fairLock(owner, wait)
  local first = clean()
  if call('EXISTS', hash) == 0 and (not first or first == owner) then
    call('LPOP', queue)
    call('ZREM', timeouts, owner)
    shift(call('ZRANGE', timeouts, 0, -1), wait)
    return take(owner)
  elseif call('HEXISTS', hash, owner) == 1 then
    return take(owner)
  end
  local left = call('PTTL', hash)
  if call('ZSCORE', timeouts, owner) then
    return math.max(0, left)
  end
  local last = call('LINDEX', queue, -1)
  if last and last ~= owner then
    left = call('ZSCORE', timeouts, last) - now
  end
  call('ZADD', timeouts, left + wait + now, owner)
  call('RPUSH', queue, owner)
  return left
end

function operations.fairGiveUp(owner, wait)
  local waiting = call('LRANGE', queue, 0, -1)
  while waiting[1] and table.remove(waiting, 1) ~= owner do end
  shift(waiting, wait)
  call('ZREM', timeouts, owner)
  call('LREM', queue, 0, owner)
end

function operations.fairUnlock(owner)
  local first = clean()
  if call('HINCRBY', hash, owner, -1) == 0 then
    call('DEL', hash)
    if first then
      call('PUBLISH', channel .. ':' .. first, 0)
    end
  end
end

return operations[ARGV[4]](ARGV[5], ARGV[6])`

// redisson runs one of Redisson's operations.
func (d *db) redisson(t *testing.T, lock string, operation ...string) (reply string) {
	t.Helper()
	words := append([]string{"EVAL", redissonFair}, strings.Fields(names(lock).Replace("1 NAME CHANNEL QUEUE TIMEOUTS"))...)
	if reply = d.do(t, append(words, operation...)...); strings.HasPrefix(reply, "-") {
		t.Fatalf("%s: %s", operation, reply)
	}
	return reply
}
