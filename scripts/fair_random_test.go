package scripts_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// More owners than Lua's stack would take at once join a queue, each once.
func TestFairMany(t *testing.T) {
	eachRedis(t, func(t *testing.T, d *db) {
		const many = 2001
		lock, args := redistest.Name(t), "u - 0 0"
		for i := range many {
			args += fmt.Sprintf(" u:%d 30000 1", i)
		}
		keys, argv := call(scripts.SyncQueue, lock, args)
		for range 2 {
			d.run(t, scripts.SyncQueue, keys, argv)
			for _, count := range []string{"LLEN QUEUE", "ZCARD TIMEOUTS"} {
				if n := d.do(t, strings.Fields(names(lock).Replace(count))...); n != strconv.Itoa(many) {
					t.Errorf("%s: %s", count, n)
				}
			}
		}
	})
}

// Clients of both sides come, wait long, take, give up and die at random. As long as a
// client of ours is heard of in time, none of its waiters loses its place, and nobody
// else overtakes it; queue and timeouts always agree; and at the end nothing is left.
func TestFairRandom(t *testing.T) {
	const (
		steps   = 300
		silence = 100 // s between two signs of life of a client of ours
		wait    = "300000"
	)
	own := func(owner string) bool { return owner[0] < 'v' }
	client := func(owner string) string { return owner[:1] }
	eachRedis(t, func(t *testing.T, d *db) {
		seed := rand.Uint64()
		t.Log("seed", seed)
		lock, choices := redistest.Name(t), rand.New(rand.NewPCG(seed, 1))
		clients := []string{"s", "t", "u"}
		heard := map[string]int{} // client -> seconds since
		var line []string         // of ours, in the order in which they came
		next, holder := 0, ""
		list := func(words string) []string {
			return strings.Fields(strings.Trim(d.do(t, strings.Fields(names(lock).Replace(words))...), "[]"))
		}
		// Redisson leaves to those behind a waiter that goes what that one had left: enough to be heard of.
		awake := func(owner string) bool {
			timeout, _ := strconv.Atoi(d.do(t, "ZSCORE", names(lock).Replace("TIMEOUTS"), owner))
			return timeout > int(time.Now().UnixMilli())+1000*silence
		}
		call := func(client, released, take string) { // what a client of ours says
			args := fmt.Sprintf("%s %s %s %d", client, released, take, next)
			for _, owner := range line {
				if strings.HasPrefix(owner, client) {
					args += " " + owner + " 30000 1"
				}
			}
			keys, argv := call(scripts.SyncQueue, lock, args)
			reply := strings.Split(strings.Trim(d.run(t, scripts.SyncQueue, keys, argv), "[]"), " ")
			if heard[client] = 0; reply[0] == "1" {
				if holder = reply[2]; len(line) == 0 || line[0] != holder {
					t.Fatalf("%s overtakes %q", holder, line)
				}
				line = line[1:]
			}
		}
		release := func() {
			switch {
			case holder == "":
			case own(holder):
				call(client(holder), holder, "0")
			default:
				d.java(t, lock, "fairUnlock", holder)
			}
			holder = ""
		}
		for range steps {
			theirs := slices.DeleteFunc(list("LRANGE QUEUE 0 -1"), own)
			switch choices.IntN(8) {
			case 0, 1: // one of ours comes
				next++
				c := clients[choices.IntN(len(clients))]
				line = append(line, fmt.Sprint(c, ":", next))
				call(c, "-", "0")
			case 2: // one of theirs comes
				next++
				if owner := fmt.Sprint("v:", next); d.java(t, lock, "fairLock", owner, wait) == "(nil)" {
					holder = owner
				}
			case 3: // one of ours gives up
				if n := len(line); n > 0 {
					i := choices.IntN(n)
					c := client(line[i])
					line = slices.Delete(line, i, i+1)
					call(c, "-", "0")
				}
			case 4: // one of theirs gives up, or dies, which shows in time
				if len(theirs) > 0 {
					if owner := theirs[choices.IntN(len(theirs))]; awake(owner) {
						d.java(t, lock, "fairGiveUp", owner, wait)
					}
				}
			case 5:
				release()
			case 6: // who is first takes, if it is still awake
				if holder == "" && len(theirs) > 0 && awake(theirs[0]) && d.java(t, lock, "fairLock", theirs[0], wait) == "(nil)" {
					holder = theirs[0]
				} else if holder == "" && len(line) > 0 {
					call(client(line[0]), "-", "1")
				}
			case 7: // time goes by
				passed := 1 + choices.IntN(silence/2)
				for _, owner := range list("ZRANGE TIMEOUTS 0 -1") {
					d.must(t, "ZINCRBY", names(lock).Replace("TIMEOUTS"), strconv.Itoa(-1000*passed), owner)
				}
				for _, c := range clients {
					if heard[c] += passed; heard[c] >= silence/2 {
						call(c, "-", "0")
					}
				}
			}
			d.must(t, "PEXPIRE", lock, "30000")
			queue, timed := list("LRANGE QUEUE 0 -1"), list("ZRANGE TIMEOUTS 0 -1")
			ours := slices.DeleteFunc(slices.Clone(queue), func(o string) bool { return !own(o) })
			slices.Sort(queue)
			slices.Sort(timed)
			if !slices.Equal(ours, line) || !slices.Equal(queue, timed) {
				t.Fatalf("in the queue are %q, should be %q; queue %q, timeouts %q", ours, line, queue, timed)
			}
		}
		release()
		line = nil
		for _, c := range clients {
			call(c, "-", "0")
		}
		for _, owner := range list("LRANGE QUEUE 0 -1") {
			d.java(t, lock, "fairGiveUp", owner, wait)
		}
		d.expectState(t, "at the end", lock, time.Now(), "")
	})
}
