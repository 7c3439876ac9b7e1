package scripts_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// What a Redisson client does to a read/write lock. The replies are its scripts':
// "(nil)" is success for who takes, and failure for who gives back.

func (j *java) readLock(owner, lease string) string {
	mode := j.command("HGET", j.name, "mode")
	count, left := "1", 0
	switch {
	case mode == "(nil)":
		j.command("HSET", j.name, "mode", "read", owner, "1")
	case mode == "read" || j.command("HEXISTS", j.name, owner+":write") == "1":
		left = j.number("PTTL", j.name)
		count = j.command("HINCRBY", j.name, owner, "1")
	default:
		return j.command("PTTL", j.name)
	}
	j.command("SET", leaseOf(j.name, owner, count), "1", "PX", lease)
	ms, _ := strconv.Atoi(lease)
	j.command("PEXPIRE", j.name, strconv.Itoa(max(left, ms)))
	return "(nil)"
}

func (j *java) writeLock(owner, lease string) string {
	mode := j.command("HGET", j.name, "mode")
	switch {
	case mode == "(nil)":
		j.command("HSET", j.name, "mode", "write", owner+":write", "1")
		j.command("PEXPIRE", j.name, lease)
	case mode == "write" && j.command("HEXISTS", j.name, owner+":write") == "1":
		j.command("HINCRBY", j.name, owner+":write", "1")
		ms, _ := strconv.Atoi(lease)
		j.command("PEXPIRE", j.name, strconv.Itoa(j.number("PTTL", j.name)+ms))
	default:
		return j.command("PTTL", j.name)
	}
	return "(nil)"
}

func (j *java) readUnlock(owner string) string {
	mode := j.command("HGET", j.name, "mode")
	if mode == "(nil)" {
		j.command("PUBLISH", channelRW(j.name), "0")
		return "(nil)"
	}
	if j.command("HEXISTS", j.name, owner) == "0" {
		return "(nil)"
	}
	count := j.number("HINCRBY", j.name, owner, "-1")
	if count == 0 {
		j.command("HDEL", j.name, owner)
	}
	j.command("DEL", leaseOf(j.name, owner, strconv.Itoa(count+1)))
	if j.number("HLEN", j.name) > 1 {
		longest := -2
		for _, field := range j.list("HKEYS", j.name) {
			held, _ := strconv.Atoi(j.command("HGET", j.name, field))
			for i := held; i > 0; i-- {
				longest = max(longest, j.number("PTTL", leaseOf(j.name, field, strconv.Itoa(i))))
			}
		}
		if longest > 0 {
			j.command("PEXPIRE", j.name, strconv.Itoa(longest))
			return "0"
		} else if mode == "write" {
			return "0"
		}
	}
	j.command("DEL", j.name)
	j.command("PUBLISH", channelRW(j.name), "0")
	return "1"
}

func (j *java) writeUnlock(owner, lease string) string {
	mode := j.command("HGET", j.name, "mode")
	if mode == "(nil)" {
		j.command("PUBLISH", channelRW(j.name), "1")
		return "(nil)"
	}
	if mode != "write" || j.command("HEXISTS", j.name, owner+":write") == "0" {
		return "(nil)"
	}
	if j.number("HINCRBY", j.name, owner+":write", "-1") > 0 {
		j.command("PEXPIRE", j.name, lease)
		return "0"
	}
	j.command("HDEL", j.name, owner+":write")
	if j.command("HLEN", j.name) == "1" {
		j.command("DEL", j.name)
		j.command("PUBLISH", channelRW(j.name), "1")
	} else {
		j.command("HSET", j.name, "mode", "read")
	}
	return "1"
}

// set is read_write_set with its first four arguments, for a writer that announces
// itself, release is read_write_release.
func (j *java) set(format string, args ...any) string {
	given := append(words(fmt.Sprintf(format, args...)), "5000", "{"+j.name+"}", "0")
	return j.run(j.T, scripts.ReadWriteSet, []string{j.name}, append(given, rwNames(j.name)...))
}

func (j *java) release(owner string) string {
	return j.run(j.T, scripts.ReadWriteRelease, []string{j.name}, append([]string{owner, "{" + j.name + "}"}, rwNames(j.name)...))
}

func (j *java) wantRW(step, reply, wantReply, state, told string) {
	j.Helper()
	if reply != wantReply && settle(reply, wantReply, j.start) != wantReply && settleSecond(reply, wantReply, j.start) != wantReply {
		j.Errorf("%s: reply %q, want %q", step, reply, wantReply)
	}
	if got := j.stateRW(j.T, j.name, state, j.start); got != state {
		j.Errorf("%s: state %q, want %q", step, got, state)
	}
	if got := strings.Join(j.messages(j.T, channelRW(j.name)), " "); got != told {
		j.Errorf("%s: published %q, want %q", step, got, told)
	}
}

// What was observed with Redisson, and that we leave the same. Different on purpose: a
// lease is that of the last call for all of an owner's holds, and a re-entered write
// hold's lease is not longer for it.
func TestReadWriteGolden(t *testing.T) {
	const (
		u1, v1 = own, foreign
		// The leases 1 and 2 of u1, and v1's.
		read = u1 + "=2 " + v1 + "=1 mode=read 600000, " + u1 + "#1 20000, " + u1 + "#2 20000, " + v1 + "#1 600000"
		last = v1 + "=1 mode=read 600000, " + v1 + "#1 600000"
	)
	eachJava(t, func(j *java) {
		j.readLock(u1, "20000")
		j.readLock(u1, "20000")
		j.wantRW("V joins", j.readLock(v1, "600000"), "(nil)", read, "")
		j.wantRW("a write", j.writeLock("x:1", "30000"), "600000", read, "")
		j.readUnlock(u1)
		j.wantRW("releases", j.readUnlock(u1), "0", last, "")
		j.wantRW("the last", j.readUnlock(v1), "1", "", "0")
	})
	eachJava(t, func(j *java) {
		j.set("%s 0 1 20000", u1)
		j.set("%s 0 2 20000", u1)
		j.wantRW("V joins", j.set("%s 0 1 600000", v1), "[1 0 ]", read, "")
		j.wantRW("releases", j.release(u1), "0", last, "")
		j.wantRW("the last", j.release(v1), "0", "", "0")
	})

	const (
		written    = u1 + ":write=1 mode=write 30000"
		both       = u1 + ":write=1 " + u1 + "=1 mode=write 30000, " + u1 + "#1 30000"
		downgraded = u1 + "=1 mode=read 30000, " + u1 + "#1 30000"
	)
	eachJava(t, func(j *java) {
		j.wantRW("write", j.writeLock(u1, "30000"), "(nil)", written, "")
		j.wantRW("read", j.readLock(u1, "30000"), "(nil)", both, "")
		j.wantRW("another thread reads", j.readLock(thread2, "30000"), "30000", both, "")
		j.wantRW("release the write", j.writeUnlock(u1, "30000"), "1", downgraded, "")
		j.wantRW("release the read", j.readUnlock(u1), "1", "", "0")
		j.writeLock(u1, "30000")
		j.wantRW("release", j.writeUnlock(u1, "30000"), "1", "", "1")
	})
	eachJava(t, func(j *java) {
		j.wantRW("write", j.set("%s 1 0 30000", u1), "[1 0 ]", written, "")
		j.wantRW("read", j.set("%s 1 1 30000", u1), "[1 0 ]", both, "")
		if reply := j.set("%s 0 1 30000", thread2); !strings.HasPrefix(reply, "[0 ") {
			j.Errorf("another thread reads: %s", reply)
		}
		j.wantRW("another thread cannot", "", "", both, "")
		// Redisson forgets to say that others may read now.
		j.wantRW("release the write", j.set("%s 0 1 30000", u1), "[1 0 ]", downgraded, "1")
		j.wantRW("release the read", j.release(u1), "0", "", "0")
		j.set("%s 1 0 30000", u1)
		j.wantRW("release", j.release(u1), "0", "", "1")
	})
}

// Readers of both sides share, and each side's way out leaves the other's holds alone.
func TestReadWriteMixedReaders(t *testing.T) {
	eachJava(t, func(j *java) {
		j.readLock("v:1", "60000")
		j.wantRW("we join", j.set("u:1 0 1 30000"), "[1 0 ]", "mode=read u:1=1 v:1=1 60000, u:1#1 30000, v:1#1 60000", "")
		j.set("u:1 0 2 30000")
		j.wantRW("they join again", j.readLock("v:1", "90000"), "(nil)",
			"mode=read u:1=2 v:1=2 90000, u:1#1 30000, u:1#2 30000, v:1#1 60000, v:1#2 90000", "")
		j.wantRW("they leave once", j.readUnlock("v:1"), "0", "mode=read u:1=2 v:1=1 60000, u:1#1 30000, u:1#2 30000, v:1#1 60000", "")
		j.wantRW("they leave", j.readUnlock("v:1"), "0", "mode=read u:1=2 30000, u:1#1 30000, u:1#2 30000", "")
		j.wantRW("they come back", j.readLock("v:1", "60000"), "(nil)", "mode=read u:1=2 v:1=1 60000, u:1#1 30000, u:1#2 30000, v:1#1 60000", "")
		j.wantRW("we leave", j.release("u:1"), "0", "mode=read v:1=1 60000, v:1#1 60000", "")
		j.wantRW("they do not wait for a writer of ours", j.set("u:2 1 0 30000"), "[0 60000 v:1]", "mode=read v:1=1 60000, v:1#1 60000, !u:2 5000", "")
		j.wantRW("and join", j.readLock("w:1", "30000"), "(nil)", "mode=read v:1=1 w:1=1 60000, v:1#1 60000, w:1#1 30000, !u:2 5000", "")
		j.readUnlock("w:1")
		j.wantRW("all leave", j.readUnlock("v:1"), "1", "!u:2 5000", "0")
		j.wantRW("we write", j.set("u:2 1 0 30000"), "[1 0 ]", "mode=write u:2:write=1 30000", "")
		j.wantRW("they cannot", j.writeLock("v:1", "30000"), "30000", "mode=write u:2:write=1 30000", "")
		j.wantRW("nor read", j.readLock("v:1", "30000"), "30000", "mode=write u:2:write=1 30000", "")
		j.wantRW("we downgrade", j.set("u:2 0 1 30000"), "[1 0 ]", "mode=read u:2=1 30000, u:2#1 30000", "1")
		j.wantRW("they read", j.readLock("v:1", "30000"), "(nil)", "mode=read u:2=1 v:1=1 30000, u:2#1 30000, v:1#1 30000", "")
		j.wantRW("we would write, and read no more", j.set("u:2 1 1 30000"), "[0 30000 v:1]", "mode=read v:1=1 30000, v:1#1 30000, !u:2 5000", "")
		j.wantRW("they leave, the last", j.readUnlock("v:1"), "1", "!u:2 5000", "0")
	})
}

// Their writer, and what it leaves, is a writer to us.
func TestReadWriteMixedWriters(t *testing.T) {
	eachJava(t, func(j *java) {
		j.writeLock("v:1", "30000")
		j.readLock("v:1", "30000")
		const both = "mode=write v:1:write=1 v:1=1 30000, v:1#1 30000"
		if reply := j.set("u:1 0 1 30000"); !strings.HasPrefix(reply, "[0 ") {
			j.Errorf("we read: %s", reply)
		}
		j.wantRW("we cannot", "", "", both, "")
		j.wantRW("they downgrade", j.writeUnlock("v:1", "30000"), "1", "mode=read v:1=1 30000, v:1#1 30000", "")
		j.wantRW("we read", j.set("u:1 0 1 30000"), "[1 0 ]", "mode=read u:1=1 v:1=1 30000, u:1#1 30000, v:1#1 30000", "")
		j.readUnlock("v:1")
		j.wantRW("we write", j.set("u:1 1 1 30000"), "[1 0 ]", "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000", "")
		j.wantRW("they wait", j.readLock("v:1", "30000"), "30000", "mode=write u:1:write=1 u:1=1 30000, u:1#1 30000", "")
		j.wantRW("we leave", j.release("u:1"), "0", "", "1")
		if left := j.command("KEYS", "*"+j.name+"*"); left != "[]" {
			j.Errorf("left behind: %s", left)
		}
	})
}

// A name with a brace gets none in the names of its keys, as in Redisson.
func TestReadWriteBraces(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.ReadWriteSet)
		db.load(t, scripts.ReadWriteRelease)
		name, start := redistest.Name(t)+"{b}c", time.Now()
		keys, names := []string{name}, []string{redisio.ReadWriteChannel(name), redisio.Writer(name)}
		db.run(t, scripts.ReadWriteSet, keys, append([]string{"u:1", "0", "1", "30000", "0", redisio.Holds(name), "0"}, names...))
		if state := db.state(t, name+":u:1:rwlock_timeout:1", "30000", start); state != "'1' 30000" {
			t.Errorf("lease: %q", state)
		}
		db.run(t, scripts.ReadWriteRelease, keys, append([]string{"u:1", redisio.Holds(name)}, names...))
		if heard := db.messages(t, "redisson_rwlock:"+name); len(heard) != 1 {
			t.Errorf("heard %q", heard)
		}
		if left := db.do(t, "EXISTS", name, name+":u:1:rwlock_timeout:1"); left != "0" {
			t.Errorf("%s keys are left", left)
		}
	})
}
