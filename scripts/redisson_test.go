package scripts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
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

// sequences are the steps that are done to one lock, one after the other. A line is
//
//	step | its reply | the lock after | what is published
//
// A step is a script of ours; or, after "Redisson", one of its operations, with the lock as the real one
// left it; interop/ compares with the current release. An empty reply is not checked, and a lock that is
// free is "free".
//
// Different on purpose: we set counts instead of adding to them; the lease of the last call applies to all
// of an owner's holds; and re-entering a write hold does not extend its lease.
var sequences = map[string]string{
	"plain": `
		acquire U:1 1 30000 | (nil)       | U:1=1 30000
		acquire U:1 2 30000 | (nil)       | U:1=2 30000
		acquire U:2 1 30000 | [30000 U:1] | U:1=2 30000
		release U:2 0 30000 | -1          | U:1=2 30000
		release U:1 1 30000 | 1           | U:1=1 30000
		release U:1 0 30000 | 0           | free        | 0
		Redisson lock       |             | V:1=1 30000
		acquire U:1 1 30000 | [30000 V:1] | V:1=1 30000
		yield U:1 60000 1 | [-1 0]      | V:1=1 30000
		force_release U:1   | 0           | V:1=1 30000
		force_release V:1   | 1           | free        | 0`,
	"a fair queue of both, all ways to leave": `
		sync_queue UUID - 1 0 U:1 30000 1   | [1 0 U:1 ]     | U:1=1 30000
		sync_queue UUID - 1 0 U:2 30000 1   | [0 30000 U:1 ] | U:1=1 30000 /U:2@330
		Redisson fairLock by two            |                | U:1=1 30000 /U:2@330 V:3@630 V:4@930
		sync_queue UUID - 1 0 U:5 30000 1   | [0 30000 U:1 ] | U:1=1 30000 /U:2@330 V:3@630 V:4@930 U:5@1230
		Redisson fairLock leaves the queue   |                | U:1=1 30000 /U:2@330 V:3@630 U:5@930
		sync_queue UUID U:1 0 0             | [0 330000  1]  | /U:2@330 V:3@630 U:5@930 | U:2
		sync_queue UUID - 1 0 U:2 30000 1   | [1 0 U:2 ]     | U:2=1 30000 /V:3@330 U:5@630
		sync_queue UUID U:2 1 9 U:5 30000 1 |                | /V:3@300 U:5@600         | V:3
		Redisson fairLock                   |                | V:3=1 30000 /U:5@300
		Redisson fairUnlock                 |                | /U:5@300
		sync_queue UUID - 1 9 U:5 30000 1   | [1 0 U:5 ]     | U:5=1 30000
		sync_queue UUID U:5 0 9             |                | free                     | 0`,
	"readers": `
		read_write_set U:1 0 1 20000 0  | [1 0 ]        | U:1=1 mode=read 20000, U:1#1 20000
		read_write_set U:1 0 2 20000 0  | [1 0 ]        | U:1=2 mode=read 20000, U:1#1 20000, U:1#2 20000
		Redisson readLock                    |               | U:1=2 V:1=1 mode=read 600000, U:1#1 20000, U:1#2 20000, V:1#1 600000
		read_write_release U:1               | 0             | V:1=1 mode=read 600000, V:1#1 600000
		read_write_set U:2 1 0 30000 0  | [0 600000 V:1] | V:1=1 mode=read 600000, V:1#1 600000
		Redisson readUnlock                  |               | free 
		read_write_set U:2 1 0 30000 0  | [1 0 ]        | U:2:write=1 mode=write 30000
		read_write_set U:2 0 1 30000 0  | [1 0 ]        | U:2=1 mode=read 30000, U:2#1 30000 | rw1
		Redisson readLock                    |               | U:2=1 V:1=1 mode=read 30000, U:2#1 30000, V:1#1 30000
		read_write_set U:2 1 1 30000 0  | [0 30000 V:1] | V:1=1 mode=read 30000, V:1#1 30000
		Redisson readUnlock                  |               | free 
		read_write_release U:2               | -1            | free`,
	"writers": `
		read_write_set U:1 1 0 30000 0 | [1 0 ] | U:1:write=1 mode=write 30000
		read_write_set U:1 1 1 30000 0 | [1 0 ] | U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000
		read_write_set U:2 0 1 30000 0 |        | U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000
		read_write_set U:1 0 1 30000 0 | [1 0 ] | U:1=1 mode=read 30000, U:1#1 30000 | rw1
		read_write_release U:1              | 0      | free | rw0
		Redisson writeLock and readLock     |        | V:1:write=1 V:1=1 mode=write 30000, V:1#1 30000
		read_write_set U:1 0 1 30000 0 |        | V:1:write=1 V:1=1 mode=write 30000, V:1#1 30000
		Redisson writeUnlock                |        | V:1=1 mode=read 30000, V:1#1 30000
		read_write_set U:1 0 1 30000 0 | [1 0 ] | U:1=1 V:1=1 mode=read 30000, U:1#1 30000, V:1#1 30000
		Redisson readUnlock                 |        | U:1=1 mode=read 30000, U:1#1 30000
		read_write_set U:1 1 1 30000 0 | [1 0 ] | U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000
		read_write_release U:1              | 0      | free | rw1`,
}

// TestScripts_MixWithRedisson runs the sequences. Afterwards nothing is left of the lock.
func TestScripts_MixWithRedisson(t *testing.T) {
	// Owners in Redisson's format: "<client>:<thread>".
	const uuid = "11111111-2222-3333-4444-555555555555"
	owners := strings.NewReplacer("UUID", uuid, "U:", uuid+":", "V:", "99999999-2222-3333-4444-555555555555:")
	const clearAll = `for _, key in ipairs(redis.call('KEYS', '*' .. ARGV[1] .. '*')) do redis.call('DEL', key) end`
	eachRedis(t, func(t *testing.T, d *db) {
		for name, steps := range sequences {
			t.Run(name, func(t *testing.T) {
				lock, start := redistest.Name(t), time.Now()
				for line := range strings.Lines(strings.TrimSpace(owners.Replace(steps))) {
					cells := append(split(line, "|"), "", "", "")[:4]
					step, wantReply, state := cells[0], cells[1], strings.TrimSuffix(cells[2], "free")
					name, args, _ := strings.Cut(step, " ")
					if name == "Redisson" {
						d.must(t, "EVAL", clearAll, "0", lock)
						d.put(t, lock, state, start)
						continue
					}
					keys, argv := call(script(name), lock, args)
					reply := d.run(t, script(name), keys, argv)
					if wantReply == "" {
						wantReply = reply
					}
					d.expect(t, step, lock, start, reply, wantReply, state, cells[3])
				}
				d.expectState(t, "at the end", lock, start, "")
			})
		}
	})
}
