package scripts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// redisson does to a lock what a Redisson client does: KEYS and ARGV are what the tables call
// them, then the name of an operation and its arguments. The replies are those of Redisson's
// scripts: nil is success for who takes, and failure for who gives back.
const redisson = `
local call, hash, holds = redis.call, KEYS[1], ARGV[1]
local channel, queue, timeouts, rwchannel = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function take(owner, lease, mode)
  call('HINCRBY', hash, owner, 1)
  if mode then
    call('HSET', hash, 'mode', mode)
  end
  call('PEXPIRE', hash, lease)
end

-- drops the first of the queue while they are dead
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

local function lease(owner, i)
  return holds .. ':' .. owner .. ':rwlock_timeout:' .. i
end

local operations = {}

-- one attempt that waits, of an owner that is waited for that long
function operations.fairLock(owner, wait)
  local first = clean()
  if call('EXISTS', hash) == 0 and (not first or first == owner) then
    call('LPOP', queue)
    call('ZREM', timeouts, owner)
    shift(call('ZRANGE', timeouts, 0, -1), wait)
    return take(owner, 30000)
  elseif call('HEXISTS', hash, owner) == 1 then
    return take(owner, 30000)
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
  local line = call('LRANGE', queue, 0, -1)
  while line[1] and table.remove(line, 1) ~= owner do end
  shift(line, wait)
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

function operations.readLock(owner, time)
  local mode, left = call('HGET', hash, 'mode'), call('PTTL', hash)
  if mode == 'write' and call('HEXISTS', hash, owner .. ':write') == 0 then
    return left
  end
  take(owner, math.max(left, time), mode or 'read')
  call('SET', lease(owner, call('HGET', hash, owner)), 1, 'PX', time)
end

function operations.writeLock(owner, time)
  local mode, left = call('HGET', hash, 'mode'), call('PTTL', hash)
  if mode and (mode == 'read' or call('HEXISTS', hash, owner .. ':write') == 0) then
    return left
  end
  take(owner .. ':write', math.max(left, 0) + time, 'write')
end

function operations.readUnlock(owner)
  local mode = call('HGET', hash, 'mode')
  if mode and call('HEXISTS', hash, owner) == 0 then
    return nil
  elseif mode then
    local left, longest, fields = call('HINCRBY', hash, owner, -1), -2, call('HGETALL', hash)
    if left == 0 then
      call('HDEL', hash, owner)
    end
    call('DEL', lease(owner, left + 1))
    for i = 1, #fields, 2 do
      for n = 1, tonumber(fields[i + 1]) or 0 do
        longest = math.max(longest, call('PTTL', lease(fields[i], n)))
      end
    end
    if call('HLEN', hash) > 1 and (longest > 0 or mode == 'write') then
      if longest > 0 then
        call('PEXPIRE', hash, longest)
      end
      return 0
    end
    call('DEL', hash)
  end
  call('PUBLISH', rwchannel, 0)
  return mode and 1
end

function operations.writeUnlock(owner, time)
  local mode = call('HGET', hash, 'mode')
  if mode and call('HEXISTS', hash, owner .. ':write') == 0 then
    return nil
  elseif mode then
    if call('HINCRBY', hash, owner .. ':write', -1) > 0 then
      call('PEXPIRE', hash, time)
      return 0
    end
    call('HDEL', hash, owner .. ':write')
    if call('HLEN', hash) > 1 then
      call('HSET', hash, 'mode', 'read')
      return 1
    end
    call('DEL', hash)
  end
  call('PUBLISH', rwchannel, 1)
  return mode and 1
end

return operations[ARGV[6]](ARGV[7], ARGV[8])`

// java runs one of Redisson's operations.
func (d *db) java(t *testing.T, lock string, operation ...string) (reply string) {
	t.Helper()
	names := strings.Fields(names(lock).Replace("EVAL SCRIPT 1 NAME HOLDS CHANNEL QUEUE TIMEOUTS RWCHANNEL"))
	names[1] = redisson
	if reply = d.do(t, append(names, operation...)...); strings.HasPrefix(reply, "-") && strings.Contains(reply, "script") {
		t.Fatalf("%s: %s", operation, reply)
	}
	return reply
}

// stories begin with what was observed with Redisson. Where it is done by either side, both
// leave the same. Different on purpose: we set counts instead of adding to them; a lease is that of the last
// call for all of an owner's holds; and a re-entered write hold's lease is not longer for it.
var stories = map[string]string{
	"plain": `
		acquire U:1 1 30000 | (nil)       | U:1=1 30000
		acquire U:1 2 30000 | (nil)       | U:1=2 30000
		acquire U:2 1 30000 | [30000 U:1] | U:1=2 30000
		release U:2 0 30000 | -1          | U:1=2 30000
		renew U:1 40000     | [1]         | U:1=2 40000
		release U:1 1 30000 | 1           | U:1=1 30000
		release U:1 1 30000 | 1           | U:1=1 30000
		release U:1 0 30000 | 0           | free        | 0
		renew U:1 30000     | [0]         | free
		force_release       | 0           | free
		acquire V:1 1 30000 | (nil)       | V:1=1 30000
		acquire U:1 1 30000 | [30000 V:1] | V:1=1 30000
		acquire U:1 2 30000 | [30000 V:1] | V:1=1 30000
		yield U:1 0 60000 1 | [-1 0]      | V:1=1 30000
		force_release       | 1           | free        | 0`,
	"fenced": `
		fenced_acquire U:1 1 30000 1 | [1 1 ]        | U:1=1 30000 /'1'
		fenced_acquire U:1 2 30000 1 | [1 2 ]        | U:1=2 30000 /'2'
		fenced_acquire V:1 1 30000 1 | [0 30000 U:1] | U:1=2 30000 /'2'
		release U:1 0 30000          | 0             | /'2'             | 0`,
	"fair, of Redisson": `
		java fairLock U:1 300000 | (nil)  | U:1=1 30000
		java fairLock U:2 300000 | 30000  | U:1=1 30000 /U:2@330
		java fairLock V:3 300000 | 330000 | U:1=1 30000 /U:2@330 V:3@630
		java fairLock U:4 300000 | 630000 | U:1=1 30000 /U:2@330 V:3@630 U:4@930
		java fairUnlock U:1      |        | /U:2@330 V:3@630 U:4@930             | U:2
		java fairLock V:3 300000 | 0      | /U:2@330 V:3@630 U:4@930
		java fairLock U:2 300000 | (nil)  | U:2=1 30000 /V:3@330 U:4@630
		put`,
	"fair, of ours": `
		sync_queue UUID - 1 0 U:1 30000 1 | [1 0 U:1 ]     | U:1=1 30000
		sync_queue UUID - 1 0 U:2 30000 1 | [0 30000 U:1 ] | U:1=1 30000 /U:2@330
		java fairLock V:3 300000       | 330000         | U:1=1 30000 /U:2@330 V:3@630
		sync_queue UUID - 1 0 U:4 30000 1 | [0 30000 U:1 ] | U:1=1 30000 /U:2@330 V:3@630 U:4@930
		sync_queue UUID U:1 0 0           | [0 330000  1]  | /U:2@330 V:3@630 U:4@930             | U:2
		java fairLock V:3 300000       | 0              | /U:2@330 V:3@630 U:4@930
		sync_queue UUID - 1 0 U:2 30000 1 | [1 0 U:2 ]     | U:2=1 30000 /V:3@330 U:4@630
		put`,
	"readers, of Redisson": `
		java readLock U:1 20000   | (nil)  | U:1=1 mode=read 20000, U:1#1 20000
		java readLock U:1 20000   | (nil)  | U:1=2 mode=read 20000, U:1#1 20000, U:1#2 20000
		java readLock V:1 600000  | (nil)  | U:1=2 V:1=1 mode=read 600000, U:1#1 20000, U:1#2 20000, V:1#1 600000
		java writeLock x:1 30000  | 600000 | U:1=2 V:1=1 mode=read 600000, U:1#1 20000, U:1#2 20000, V:1#1 600000
		java readUnlock U:1       | 0
		java readUnlock U:1       | 0      | V:1=1 mode=read 600000, V:1#1 600000
		java readUnlock V:1       | 1      | free | rw0`,
	"readers, of ours": `
		read_write_set U:1 0 1 20000 5000 0  | [1 0 ]        | U:1=1 mode=read 20000, U:1#1 20000
		read_write_set U:1 0 2 20000 5000 0  | [1 0 ]        | U:1=2 mode=read 20000, U:1#1 20000, U:1#2 20000
		read_write_set V:1 0 1 600000 5000 0 | [1 0 ]        | U:1=2 V:1=1 mode=read 600000, U:1#1 20000, U:1#2 20000, V:1#1 600000
		read_write_release U:1               | 0             | V:1=1 mode=read 600000, V:1#1 600000
		read_write_release V:1               | 0             | free | rw0`,
	"a writer, of Redisson": `
		java writeLock U:1 30000   | (nil) | U:1:write=1 mode=write 30000
		java readLock U:1 30000    | (nil) | U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000
		java readLock U:2 30000    | 30000 | U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000
		java writeUnlock U:1 30000 | 1     | U:1=1 mode=read 30000, U:1#1 30000
		java readUnlock U:1        | 1     | free | rw0
		java writeLock U:1 30000
		java writeUnlock U:1 30000 | 1     | free | rw1`,
	"a writer, of ours": `
		read_write_set U:1 1 0 30000 5000 0 | [1 0 ] | U:1:write=1 mode=write 30000
		read_write_set U:1 1 1 30000 5000 0 | [1 0 ] | U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000
		read_write_set U:2 0 1 30000 5000 0 |        | U:1:write=1 U:1=1 mode=write 30000, U:1#1 30000
		read_write_set U:1 0 1 30000 5000 0 | [1 0 ] | U:1=1 mode=read 30000, U:1#1 30000 | rw1
		read_write_release U:1              | 0      | free | rw0
		read_write_set U:1 1 0 30000 5000 0
		read_write_release U:1              | 0      | free | rw1`,
	// Redisson's clients and ours on the same lock.
	"readers share, and each side's way out leaves the other's holds alone": `
		java readLock v:1 60000             | (nil)         | mode=read v:1=1 60000, v:1#1 60000
		read_write_set u:1 0 1 30000 5000 0 | [1 0 ]        | mode=read u:1=1 v:1=1 60000, u:1#1 30000, v:1#1 60000
		read_write_set u:1 0 2 30000 5000 0 | [1 0 ]
		java readLock v:1 90000             | (nil)         | mode=read u:1=2 v:1=2 90000, u:1#1 30000, u:1#2 30000, v:1#1 60000, v:1#2 90000
		java readUnlock v:1                 | 0             | mode=read u:1=2 v:1=1 60000, u:1#1 30000, u:1#2 30000, v:1#1 60000
		java readUnlock v:1                 | 0             | mode=read u:1=2 30000, u:1#1 30000, u:1#2 30000
		java readLock v:1 60000             | (nil)         | mode=read u:1=2 v:1=1 60000, u:1#1 30000, u:1#2 30000, v:1#1 60000
		read_write_release u:1              | 0             | mode=read v:1=1 60000, v:1#1 60000
		read_write_set u:2 1 0 30000 5000 0 | [0 60000 v:1] | mode=read v:1=1 60000, v:1#1 60000, !u:2 5000
		java readLock w:1 30000             | (nil)         | mode=read v:1=1 w:1=1 60000, v:1#1 60000, w:1#1 30000, !u:2 5000
		java readUnlock w:1                 | 0
		java readUnlock v:1                 | 1             | !u:2 5000 | rw0
		read_write_set u:2 1 0 30000 5000 0 | [1 0 ]        | mode=write u:2:write=1 30000
		java writeLock v:1 30000            | 30000         | mode=write u:2:write=1 30000
		java readLock v:1 30000             | 30000         | mode=write u:2:write=1 30000
		read_write_set u:2 0 1 30000 5000 0 | [1 0 ]        | mode=read u:2=1 30000, u:2#1 30000 | rw1
		java readLock v:1 30000             | (nil)         | mode=read u:2=1 v:1=1 30000, u:2#1 30000, v:1#1 30000
		read_write_set u:2 1 1 30000 5000 0 | [0 30000 v:1] | mode=read v:1=1 30000, v:1#1 30000, !u:2 5000
		java readUnlock v:1                 | 1             | !u:2 5000 | rw0
		read_write_release u:2              | -1            | free`,
	"their writer, and what it leaves, is a writer to us": `
		java writeLock v:1 30000            | (nil)
		java readLock v:1 30000             | (nil)
		read_write_set u:1 0 1 30000 5000 0 |        | mode=write v:1:write=1 v:1=1 30000, v:1#1 30000
		java writeUnlock v:1 30000          | 1      | mode=read v:1=1 30000, v:1#1 30000
		read_write_set u:1 0 1 30000 5000 0 | [1 0 ] | mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 30000
		java readUnlock v:1                 | 0
		read_write_set u:1 1 1 30000 5000 0 | [1 0 ] | mode=write u:1:write=1 u:1=1 30000, u:1#1 30000
		java readLock v:1 30000             | 30000  | mode=write u:1:write=1 u:1=1 30000, u:1#1 30000
		read_write_release u:1              | 0      | free | rw1`,
	"the queue passes between both, through every kind of leaving": `
		java fairLock v:1 300000
		sync_queue u - 1 0 u:1 30000 1 u:2 30000 1
		java fairLock v:2 300000
		java fairLock v:3 10000
		sync_queue u - 1 0 u:1 30000 1 u:2 30000 1 u:3 30000 1 | | v:1=1 30000 /u:1@300 u:2@600 v:2@930 v:3@940 u:3@1240
		java fairGiveUp v:2 300000                             | | v:1=1 30000 /u:1@300 u:2@600 v:3@640 u:3@940
		sync_queue u - 1 3 u:2 30000 1 u:3 30000 1             | | v:1=1 30000 /u:2@300 v:3@600 u:3@900
		java fairUnlock v:1                                    | | /u:2@300 v:3@600 u:3@900 | u:2
		sync_queue u - 1 3 u:2 30000 1 u:3 30000 1             | | u:2=1 30000 /v:3@300 u:3@600
		sync_queue u u:2 1 3 u:3 30000 1                       | | /v:3@300 u:3@600         | v:3
		java fairLock v:3 10000                                | | v:3=1 30000 /u:3@590
		java fairUnlock v:3                                    | |                          | u:3
		sync_queue u - 1 3 u:3 30000 1
		sync_queue u u:3 0 3                                   | | free`,
}

// TestRedisson plays stories: one thing after the other, done to one lock by Redisson's clients
// and by us. A line is
//
//	what is done | its reply | the lock after | what is told
//
// What is done is what a client of Redisson's does, behind "java"; a script of ours; or what
// the state of the lock is to be from now on, behind "put". An empty cell before another is not
// looked at: a lock that is free is "free". Afterwards nothing is left of the lock.
func TestRedisson(t *testing.T) {
	// Owners in Redisson's format: "<client>:<thread>".
	const uuid = "11111111-2222-3333-4444-555555555555"
	owners := strings.NewReplacer("UUID", uuid, "U:", uuid+":", "V:", "99999999-2222-3333-4444-555555555555:")
	eachRedis(t, func(t *testing.T, d *db) {
		for name, story := range stories {
			t.Run(name, func(t *testing.T) {
				lock, start := redistest.Name(t), time.Now()
				for line := range strings.Lines(strings.TrimSpace(owners.Replace(story))) {
					cells := append(split(line, "|"), "", "", "")[:4]
					step, reply, words := cells[0], "", strings.Fields(cells[0])
					switch words[0] {
					case "java":
						reply = d.java(t, lock, words[1:]...)
					case "put":
						d.must(t, strings.Fields(names(lock).Replace("DEL NAME QUEUE TIMEOUTS"))...)
						d.put(t, lock, strings.TrimPrefix(step, "put"), start)
					default:
						keys, args := call(script(words[0]), lock, strings.Join(words[1:], " "))
						reply = d.run(t, script(words[0]), keys, args)
					}
					if want := cells[1]; want != "" && !agree(reply, want, time.Since(start)) {
						t.Errorf("%s: reply %q, want %q", step, reply, want)
					}
					if want := cells[2]; want != "" {
						d.expectState(t, step, lock, start, strings.TrimSuffix(want, "free"))
					}
					if told := d.told(t, lock); told != cells[3] {
						t.Errorf("%s: told %q, want %q", step, told, cells[3])
					}
				}
				d.must(t, strings.Fields(names(lock).Replace("DEL TOKENS"))...)
				d.expectState(t, "at the end", lock, start, "")
			})
		}
	})
}
