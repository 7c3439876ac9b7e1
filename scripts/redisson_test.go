package scripts_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
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

// step is a call of a script of ours, with its reply (unless that is empty), the lock after, and what is published; or one
// of the operations of Redisson, with the lock as the real one left it: interop/ compares with the current release.
type step struct {
	script                       *scripts.Script
	redisson                     string
	args, reply, lock, published string
}

// sequences are the steps that are done to one lock, one after the other.
//
// Different on purpose: we set counts instead of adding to them; the lease of the last call applies to all
// of an owner's holds; and re-entering a write hold does not extend its lease.
var sequences = map[string][]step{
	"plain": {
		{script: scripts.Acquire, args: "owner=U:1", reply: "(nil)", lock: "U:1=1 30000"},
		{script: scripts.Acquire, args: "owner=U:1 count=2", reply: "(nil)", lock: "U:1=2 30000"},
		{script: scripts.Acquire, args: "owner=U:2", reply: "[30000 U:1]", lock: "U:1=2 30000", published: "UUID:asked>1.0.0"},
		{script: scripts.Release, args: "owner=U:2 lease=30000", reply: "-1", lock: "U:1=2 30000"},
		{script: scripts.Release, args: "owner=U:1 count=1 lease=30000", reply: "1", lock: "U:1=1 30000"},
		{script: scripts.Release, args: "owner=U:1 lease=30000", reply: "0", published: "0"},
		{redisson: "lock", lock: "V:1=1 30000"},
		{script: scripts.Acquire, args: "owner=U:1", reply: "[30000 V:1]", lock: "V:1=1 30000", published: "99999999-2222-3333-4444-555555555555:asked>1.0.0"},
		{script: scripts.Yield, args: "owner=U:1 forced=1", reply: "[-1 0]", lock: "V:1=1 30000"},
		{script: scripts.ForceRelease, args: "owners=U:1", reply: "0", lock: "V:1=1 30000"},
		{script: scripts.ForceRelease, args: "owners=V:1", reply: "1", published: "0 99999999-2222-3333-4444-555555555555:asked>1.0.0"},
	},
	"a fair queue of both, all ways to leave": {
		{script: scripts.SyncQueue, args: "client=UUID upto=0 listed=U:1", reply: "[1 0 U:1 ]", lock: "U:1=1 30000"},
		{script: scripts.SyncQueue, args: "client=UUID upto=0 listed=U:2", reply: "[0 30000 U:1 ]", lock: "U:1=1 30000 /U:2@330"},
		{redisson: "fairLock by two", lock: "U:1=1 30000 /U:2@330 V:3@630 V:4@930"},
		{script: scripts.SyncQueue, args: "client=UUID upto=0 listed=U:5", reply: "[0 30000 U:1 ]", lock: "U:1=1 30000 /U:2@330 V:3@630 V:4@930 U:5@1230"},
		{redisson: "fairLock leaves the queue", lock: "U:1=1 30000 /U:2@330 V:3@630 U:5@930"},
		{script: scripts.SyncQueue, args: "client=UUID releases=U:1 take=0 upto=0", reply: "[0 330000  1]", lock: "/U:2@330 V:3@630 U:5@930", published: "U:2"},
		{script: scripts.SyncQueue, args: "client=UUID upto=0 listed=U:2", reply: "[1 0 U:2 ]", lock: "U:2=1 30000 /V:3@330 U:5@630"},
		{script: scripts.SyncQueue, args: "client=UUID releases=U:2 listed=U:5", lock: "/V:3@300 U:5@600", published: "V:3"},
		{redisson: "fairLock", lock: "V:3=1 30000 /U:5@300"},
		{redisson: "fairUnlock", lock: "/U:5@300"},
		{script: scripts.SyncQueue, args: "client=UUID listed=U:5", reply: "[1 0 U:5 ]", lock: "U:5=1 30000"},
		{script: scripts.SyncQueue, args: "client=UUID releases=U:5 take=0", published: "0"},
	},
	"readers": {
		{script: scripts.ReadWriteSet, args: "owner=U:1 lease=20000", reply: "[1 0 ]", lock: "U:1=1 mode=read 20000, U:1#1 20000"},
		{script: scripts.ReadWriteSet, args: "owner=U:1 reads=2 lease=20000", reply: "[1 0 ]", lock: "U:1=2 mode=read 20000, U:1#1 20000, U:1#2 20000"},
		{redisson: "readLock", lock: "U:1=2 V:1=1 mode=read 600000, U:1#1 20000, U:1#2 20000, V:1#1 600000"},
		{script: scripts.ReadWriteRelease, args: "owner=U:1", reply: "0", lock: "V:1=1 mode=read 600000, V:1#1 600000"},
		{script: scripts.ReadWriteSet, args: "owner=U:2 writes=1 reads=0", reply: "[0 600000 V:1]", lock: "V:1=1 mode=read 600000, V:1#1 600000"},
		{redisson: "readUnlock"},
		{script: scripts.ReadWriteSet, args: "owner=U:2 writes=1 reads=0", reply: "[1 0 ]", lock: "U:2:write=1 mode=write 30000"},
		{script: scripts.ReadWriteSet, args: "owner=U:2", reply: "[1 0 ]", lock: "U:2=1 mode=read 30000, U:2#1 30000", published: "rw1"},
		{redisson: "readLock", lock: "U:2=1 V:1=1 mode=read 30000, U:2#1 30000, V:1#1 30000"},
		{script: scripts.ReadWriteSet, args: "owner=U:2 writes=1", reply: "[0 30000 V:1]", lock: "V:1=1 mode=read 30000, V:1#1 30000"},
		{redisson: "readUnlock"},
		{script: scripts.ReadWriteRelease, args: "owner=U:2", reply: "-1"},
	},
	"writers": {
		{script: scripts.ReadWriteSet, args: "owner=U:1 writes=1 reads=0", reply: "[1 0 ]", lock: "U:1:write=1 mode=write 30000"},
		{script: scripts.ReadWriteSet, args: "owner=U:1 writes=1", reply: "[1 0 ]", lock: "U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000"},
		{script: scripts.ReadWriteSet, args: "owner=U:2", lock: "U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000"},
		{script: scripts.ReadWriteSet, args: "owner=U:1", reply: "[1 0 ]", lock: "U:1=1 mode=read 30000, U:1#1 30000", published: "rw1"},
		{script: scripts.ReadWriteRelease, args: "owner=U:1", reply: "0", published: "rw0"},
		{redisson: "writeLock and readLock", lock: "V:1:write=1 V:1=1 mode=write 30000, V:1#1 30000"},
		{script: scripts.ReadWriteSet, args: "owner=U:1", lock: "V:1:write=1 V:1=1 mode=write 30000, V:1#1 30000"},
		{redisson: "writeUnlock", lock: "V:1=1 mode=read 30000, V:1#1 30000"},
		{script: scripts.ReadWriteSet, args: "owner=U:1", reply: "[1 0 ]", lock: "U:1=1 V:1=1 mode=read 30000, U:1#1 30000, V:1#1 30000"},
		{redisson: "readUnlock", lock: "U:1=1 mode=read 30000, U:1#1 30000"},
		{script: scripts.ReadWriteSet, args: "owner=U:1 writes=1", reply: "[1 0 ]", lock: "U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000"},
		{script: scripts.ReadWriteRelease, args: "owner=U:1", reply: "0", published: "rw1"},
	},
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
				for i, step := range steps {
					state := owners.Replace(step.lock)
					if step.redisson != "" {
						d.must(t, "EVAL", clearAll, "0", lock)
						d.put(t, lock, state, start)
						continue
					}
					keys, args := call(step.script, lock, owners.Replace(step.args))
					reply := d.run(t, step.script, keys, args)
					d.expect(t, fmt.Sprintf("step %d, %s", i+1, step.script.Name), lock, start, reply, cmp.Or(owners.Replace(step.reply), reply), state, owners.Replace(step.published))
				}
				d.expectState(t, "at the end", lock, start, "")
			})
		}
	})
}
