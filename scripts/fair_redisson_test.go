package scripts_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// java does to one lock, command by command, what a Redisson client does.
type java struct {
	*testing.T
	*db
	name  string
	start time.Time
}

func eachJava(t *testing.T, test func(j *java)) {
	eachRedis(t, func(t *testing.T, db *db) {
		for _, s := range scripts.All {
			db.load(t, s)
		}
		test(&java{t, db, redistest.Name(t), time.Now()})
	})
}

func (j *java) command(words ...string) string { return j.do(j.T, words...) }

func (j *java) number(words ...string) int {
	n, err := strconv.Atoi(j.command(words...))
	if err != nil {
		j.Fatalf("%q: %v", words, err)
	}
	return n
}

func now() int { return int(time.Now().UnixMilli()) }

// clean drops the first of the queue while they are dead.
func (j *java) clean() {
	for {
		head := j.command("LINDEX", queueOf(j.name), "0")
		score, err := strconv.Atoi(j.command("ZSCORE", timeoutsOf(j.name), head))
		if err != nil || score > now() {
			return
		}
		j.command("ZREM", timeoutsOf(j.name), head)
		j.command("LPOP", queueOf(j.name))
	}
}

func (j *java) shift(wait int, owners ...string) {
	for _, owner := range owners {
		j.command("ZINCRBY", timeoutsOf(j.name), strconv.Itoa(-wait), owner)
	}
}

func (j *java) list(words ...string) []string {
	return strings.Fields(strings.Trim(j.command(words...), "[]"))
}

// fairLock is one attempt that waits, of an owner with that patience. Its reply is
// "(nil)" for success, else for how long to wait, as it is in Java.
func (j *java) fairLock(owner string, wait int, lease string) string {
	j.clean()
	head := j.command("LINDEX", queueOf(j.name), "0")
	if j.command("EXISTS", j.name) == "0" && (head == "(nil)" || head == owner) {
		j.command("LPOP", queueOf(j.name))
		j.command("ZREM", timeoutsOf(j.name), owner)
		j.shift(wait, j.list("ZRANGE", timeoutsOf(j.name), "0", "-1")...)
		j.command("HSET", j.name, owner, "1")
		j.command("PEXPIRE", j.name, lease)
		return "(nil)"
	}
	if j.command("HEXISTS", j.name, owner) == "1" {
		j.command("HINCRBY", j.name, owner, "1")
		j.command("PEXPIRE", j.name, lease)
		return "(nil)"
	}
	left := j.number("PTTL", j.name)
	if j.command("ZSCORE", timeoutsOf(j.name), owner) != "(nil)" {
		return strconv.Itoa(max(0, left))
	}
	base := left
	if last := j.command("LINDEX", queueOf(j.name), "-1"); last != owner {
		if score, err := strconv.Atoi(j.command("ZSCORE", timeoutsOf(j.name), last)); err == nil {
			base = score - now()
		}
	}
	j.command("ZADD", timeoutsOf(j.name), strconv.Itoa(base+wait+now()), owner)
	j.command("RPUSH", queueOf(j.name), owner)
	return strconv.Itoa(base)
}

func (j *java) fairGiveUp(owner string, wait int) {
	queue := j.list("LRANGE", queueOf(j.name), "0", "-1")
	if i := slices.Index(queue, owner); i >= 0 {
		j.shift(wait, queue[i+1:]...)
		j.command("ZREM", timeoutsOf(j.name), owner)
		j.command("LREM", queueOf(j.name), "0", owner)
	}
}

func (j *java) fairUnlock(owner string) {
	j.clean()
	if j.command("HINCRBY", j.name, owner, "-1") == "0" {
		j.command("DEL", j.name)
		if head := j.command("LINDEX", queueOf(j.name), "0"); head != "(nil)" {
			j.command("PUBLISH", channelOf(j.name)+":"+head, "0")
		}
	}
}

// fair runs fair_queue for the client "u", with arguments as in the rows.
func (j *java) fair(args string) string {
	return j.run(j.T, scripts.FairQueue, []string{j.name}, fairArgs(j.name, args))
}

func (j *java) wantFair(step, reply, wantReply, lock, queue, told string) {
	j.Helper()
	if got := settleSecond(reply, wantReply, j.start); got != wantReply && settle(reply, wantReply, j.start) != wantReply {
		j.Errorf("%s: reply %q, want %q", step, reply, wantReply)
	}
	if got := j.state(j.T, j.name, lock, j.start); got != lock {
		j.Errorf("%s: lock %q, want %q", step, got, lock)
	}
	if got := j.queue(j.T, j.name, queue, j.start); got != queue {
		j.Errorf("%s: queue %q, want %q", step, got, queue)
	}
	if got := strings.Join(j.told(j.T, channelOf(j.name)+":"), " "); got != told {
		j.Errorf("%s: told %q, want %q", step, got, told)
	}
}

const redissonWait = 300000

// What was observed with Redisson: three wait for a fourth. Every step is made once by
// each side, and leaves the same.
func TestFairGolden(t *testing.T) {
	for _, side := range []string{"java", "ours"} {
		step := func(j *java, java func() string, ours string) string {
			if side == "java" {
				return java()
			}
			return j.fair(ours)
		}
		t.Run(side, func(t *testing.T) {
			eachJava(t, func(j *java) {
				lock := func(owner string) func() string {
					return func() string { return j.fairLock(owner, redissonWait, "30000") }
				}
				want := func(name, reply, java, ours, lock, queue, told string) {
					j.Helper()
					if side == "java" {
						ours = java
					}
					j.wantFair(name, reply, ours, lock, queue, told)
				}
				const held = "u:1=1 30000"
				want("acquire", step(j, lock("u:1"), "- 1 0 u:1 30000 1"), "(nil)", "[1 0 u:1 ]", held, "", "")
				want("B", step(j, lock("u:2"), "- 1 0 u:2 30000 1"), "30000", "[0 30000 u:1 ]", held, "u:2@330", "")
				want("C", j.fairLock("v:3", redissonWait, "30000"), "330000", "330000", held, "u:2@330 v:3@630", "")
				want("D", step(j, lock("u:4"), "- 1 0 u:4 30000 1"), "630000", "[0 30000 u:1 ]", held, "u:2@330 v:3@630 u:4@930", "")
				want("release", step(j, func() string { j.fairUnlock("u:1"); return "" }, "u:1 0 0"), "", "[0 330000  1]", "", "u:2@330 v:3@630 u:4@930", "u:2")
				want("C again", j.fairLock("v:3", redissonWait, "30000"), "0", "0", "", "u:2@330 v:3@630 u:4@930", "")
				before := j.list("ZRANGE", timeoutsOf(j.name), "1", "-1", "WITHSCORES")
				want("B is head", step(j, lock("u:2"), "- 1 0 u:2 30000 1"), "(nil)", "[1 0 u:2 ]", "u:2=1 30000", "v:3@330 u:4@630", "")
				after := j.list("ZRANGE", timeoutsOf(j.name), "0", "-1", "WITHSCORES")
				for i := 1; i < len(before) && i < len(after); i += 2 {
					b, _ := strconv.Atoi(strings.TrimLeft(strings.Trim(before[i], "]"), "["))
					a, _ := strconv.Atoi(strings.TrimLeft(strings.Trim(after[i], "]"), "["))
					if b-a != redissonWait {
						j.Errorf("a timeout went from %d to %d", b, a)
					}
				}
			})
		})
	}
}

// A live waiter of ours stays, whatever Redisson's do before it.
func TestFairBehindJava(t *testing.T) {
	eachJava(t, func(j *java) {
		j.putQueue(j.T, j.name, "v:1@20 v:2@320", j.start)
		j.fair("- 1 0 u:1 30000 1")
		for _, owner := range []string{"v:1", "v:2"} {
			if reply := j.fairLock(owner, redissonWait, "30000"); reply != "(nil)" {
				j.Fatalf("%s: %s", owner, reply)
			}
			j.fairUnlock(owner)
		}
		j.fairLock("v:3", redissonWait, "30000")
		j.wantFair("ours is the head", "", "", "", "u:1@20 v:3@320", "u:1 v:2")
		j.wantFair("and comes", j.fair("- 1 0 u:1 30000 1"), "[1 0 u:1 ]", "u:1=1 30000", "v:3@300", "")
	})
}

// Redisson's do not refresh their timeouts. One who has waited long behind a waiter of
// ours that does must not be dead when that one comes or goes.
func TestFairBeforeJava(t *testing.T) {
	eachJava(t, func(j *java) {
		for _, end := range []string{"- 1 9 u:1 30000 1", "- 1 9"} {
			j.putQueue(j.T, j.name, "u:1@300 v:2@40", j.start)
			j.fair(end)
			j.command("DEL", j.name)
			if reply := j.fairLock("v:2", redissonWait, "30000"); reply != "(nil)" {
				j.Errorf("%s: the one behind got %s", end, reply)
			}
			j.command("DEL", j.name, queueOf(j.name), timeoutsOf(j.name))
		}
	})
}

// Many clients that refresh in the worst order, each just before the one in front of
// it, take in a row: nobody loses its place.
func TestFairManyClients(t *testing.T) {
	eachJava(t, func(j *java) {
		var queue []string
		for i := range 40 {
			// Each timeout is 20 s less behind the one before it than a whole patience.
			queue = append(queue, string(rune('A'+i))+":1@"+strconv.Itoa(300+280*i))
		}
		j.putQueue(j.T, j.name, strings.Join(queue, " "), j.start)
		for i := range queue {
			owner := string(rune('A'+i)) + ":1"
			args := fairArgs(j.name, "- 1 9 "+owner+" 30000 1")
			args[0] = string(rune('A' + i))
			if reply := j.run(j.T, scripts.FairQueue, []string{j.name}, args); reply != "[1 0 "+owner+" ]" {
				j.Fatalf("%s: %s", owner, reply)
			}
			j.command("DEL", j.name)
		}
	})
}

// The queue passes between Redisson and us, through every kind of leaving.
func TestFairMixed(t *testing.T) {
	eachJava(t, func(j *java) {
		j.fairLock("v:1", redissonWait, "30000")
		j.fair("- 1 0 u:1 30000 1 u:2 30000 1")
		j.fairLock("v:2", redissonWait, "30000")
		j.fairLock("v:3", 10000, "30000")
		j.fair("- 1 0 u:1 30000 1 u:2 30000 1 u:3 30000 1")
		j.wantFair("all wait", "", "", "v:1=1 30000", "u:1@300 u:2@600 v:2@930 v:3@940 u:3@1240", "")
		j.fairGiveUp("v:2", redissonWait)
		j.wantFair("one of theirs leaves", "", "", "v:1=1 30000", "u:1@300 u:2@600 v:3@640 u:3@940", "")
		j.fair("- 1 3 u:2 30000 1 u:3 30000 1")
		j.wantFair("one of ours leaves", "", "", "v:1=1 30000", "u:2@300 v:3@600 u:3@900", "")
		j.fairUnlock("v:1")
		j.wantFair("theirs is released", "", "", "", "u:2@300 v:3@600 u:3@900", "u:2")
		j.fair("- 1 3 u:2 30000 1 u:3 30000 1")
		j.wantFair("we take", "", "", "u:2=1 30000", "v:3@300 u:3@600", "")
		j.fair("u:2 1 3 u:3 30000 1")
		j.wantFair("ours is released", "", "", "", "v:3@300 u:3@600", "v:3")
		j.fairLock("v:3", 10000, "30000")
		j.wantFair("they take", "", "", "v:3=1 30000", "u:3@590", "")
		j.fairUnlock("v:3")
		j.fair("- 1 3 u:3 30000 1")
		j.fair("u:3 0 3")
		if left := j.command("KEYS", "*"+j.name+"*"); left != "[]" {
			j.Errorf("left behind: %s", left)
		}
	})
}
