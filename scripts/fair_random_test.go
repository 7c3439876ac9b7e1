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

// More owners than fit on Lua's stack at once join a queue, each once.
func TestSyncQueue_TakesThousandsOfOwners(t *testing.T) {
	d := onRedis(t)
	const many = 2001
	lock, args := redistest.Name(t), "take=0 upto=0 listed="
	for i := range many {
		args += fmt.Sprintf("u:%d,", i)
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
}

// Clients of Lockkeeper and of Redisson join, wait long, take, leave and die at random. While a client of
// ours confirms its waiters in time, none of them loses its position, and no other waiter overtakes it;
// queue and timeouts always agree; and at the end nothing is left.
func TestSyncQueue_KeepsOrderInRandomRuns(t *testing.T) {
	const (
		steps   = 300
		silence = 100 // s between two confirmations by a client of ours
		wait    = "300000"
	)
	own := func(owner string) bool { return owner[0] < 'v' }
	client := func(owner string) string { return owner[:1] }
	d := onRedis(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	lock, choices := redistest.Name(t), rand.New(rand.NewPCG(seed, 1))
	clients := []string{"s", "t", "u"}
	confirmed := map[string]int{} // client -> seconds since
	var waiting []string          // of ours, in the order in which they joined
	next, holder := 0, ""
	list := func(words string) []string {
		return strings.Fields(strings.Trim(d.do(t, strings.Fields(names(lock).Replace(words))...), "[]"))
	}
	// When a waiter leaves, Redisson leaves those behind it the rest of its time. An awake one has enough to be confirmed.
	awake := func(owner string) bool {
		timeout, _ := strconv.Atoi(d.do(t, "ZSCORE", names(lock).Replace("TIMEOUTS"), owner))
		return timeout > int(time.Now().UnixMilli())+1000*silence
	}
	call := func(client, released, take string) { // a command of a client of ours
		args := fmt.Sprintf("client=%s releases=%s take=%s upto=%d listed=", client, released, take, next)
		for _, owner := range waiting {
			if strings.HasPrefix(owner, client) {
				args += owner + ","
			}
		}
		keys, argv := call(scripts.SyncQueue, lock, args)
		reply := strings.Split(strings.Trim(d.run(t, scripts.SyncQueue, keys, argv), "[]"), " ")
		if confirmed[client] = 0; reply[0] == "1" {
			if holder = reply[2]; len(waiting) == 0 || waiting[0] != holder {
				t.Fatalf("%s overtakes %q", holder, waiting)
			}
			waiting = waiting[1:]
		}
	}
	release := func() {
		switch {
		case holder == "":
		case own(holder):
			call(client(holder), holder, "0")
		default:
			d.redisson(t, lock, "fairUnlock", holder)
		}
		holder = ""
	}
	for range steps {
		theirs := slices.DeleteFunc(list("LRANGE QUEUE 0 -1"), own)
		switch choices.IntN(8) {
		case 0, 1: // one of ours joins
			next++
			c := clients[choices.IntN(len(clients))]
			waiting = append(waiting, fmt.Sprint(c, ":", next))
			call(c, "-", "0")
		case 2: // one of theirs joins
			next++
			if owner := fmt.Sprint("v:", next); d.redisson(t, lock, "fairLock", owner, wait) == "(nil)" {
				holder = owner
			}
		case 3: // one of ours leaves
			if n := len(waiting); n > 0 {
				i := choices.IntN(n)
				c := client(waiting[i])
				waiting = slices.Delete(waiting, i, i+1)
				call(c, "-", "0")
			}
		case 4: // one of theirs leaves, or dies, which shows in time
			if len(theirs) > 0 {
				if owner := theirs[choices.IntN(len(theirs))]; awake(owner) {
					d.redisson(t, lock, "fairGiveUp", owner, wait)
				}
			}
		case 5:
			release()
		case 6: // the first takes, if it is still awake
			if holder == "" && len(theirs) > 0 && awake(theirs[0]) && d.redisson(t, lock, "fairLock", theirs[0], wait) == "(nil)" {
				holder = theirs[0]
			} else if holder == "" && len(waiting) > 0 {
				call(client(waiting[0]), "-", "1")
			}
		case 7: // time passes
			passed := 1 + choices.IntN(silence/2)
			for _, owner := range list("ZRANGE TIMEOUTS 0 -1") {
				d.must(t, "ZINCRBY", names(lock).Replace("TIMEOUTS"), strconv.Itoa(-1000*passed), owner)
			}
			for _, c := range clients {
				if confirmed[c] += passed; confirmed[c] >= silence/2 {
					call(c, "-", "0")
				}
			}
		}
		d.must(t, "PEXPIRE", lock, "30000")
		queue, timed := list("LRANGE QUEUE 0 -1"), list("ZRANGE TIMEOUTS 0 -1")
		ours := slices.DeleteFunc(slices.Clone(queue), func(o string) bool { return !own(o) })
		slices.Sort(queue)
		slices.Sort(timed)
		if !slices.Equal(ours, waiting) || !slices.Equal(queue, timed) {
			t.Fatalf("our waiters in the queue are %q, want %q; queue %q, timeouts %q", ours, waiting, queue, timed)
		}
	}
	release()
	waiting = nil
	for _, c := range clients {
		call(c, "-", "0")
	}
	for _, owner := range list("LRANGE QUEUE 0 -1") {
		d.redisson(t, lock, "fairGiveUp", owner, wait)
	}
	d.expectState(t, "at the end", lock, time.Now(), "")
}
