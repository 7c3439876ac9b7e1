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

// Clients of both sides come, wait long, take, give up and die at random. As long as a
// client of ours is heard of in time, none of its waiters loses its place, and nobody
// else overtakes it; queue and timeouts always agree; and at the end nothing is left.
func TestFairRandom(t *testing.T) {
	const (
		seeds   = 3
		steps   = 400
		silence = 100 // s between two signs of life of a client of ours
	)
	db := connect(t, redistest.Shared(t).Addr(), false)
	db.load(t, scripts.FairQueue)
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			j := &java{t, db, redistest.Name(t), time.Now()}
			r := rand.New(rand.NewPCG(seed, 1))
			clients := []string{"a", "b", "c"}
			heard := map[string]int{}        // client -> seconds since
			waiting := map[string][]string{} // client -> who waits
			var line []string                // of ours, in the order in which they came
			next, holder := 0, ""
			own := func(owner string) bool { return owner[0] < 'v' }
			call := func(client, released string, take bool) {
				args := []string{client, released, strconv.Itoa(map[bool]int{true: 1}[take]), strconv.Itoa(next), patience}
				args = append(args, fairNames(j.name)...)
				for _, owner := range waiting[client] {
					args = append(args, owner, "30000", "1")
				}
				reply := strings.Split(strings.Trim(j.run(j.T, scripts.FairQueue, []string{j.name}, args), "[]"), " ")
				if heard[client] = 0; reply[0] == "1" {
					holder = reply[2]
					waiting[client] = slices.DeleteFunc(waiting[client], func(o string) bool { return o == holder })
					if len(line) == 0 || line[0] != holder {
						j.Errorf("%s overtakes %q", holder, line)
					}
					line = slices.DeleteFunc(line, func(o string) bool { return o == holder })
				}
			}
			release := func() {
				switch client, _, _ := strings.Cut(holder, ":"); {
				case holder == "":
				case own(holder):
					call(client, holder, false)
				default:
					j.fairUnlock(holder)
				}
				holder = ""
			}
			for range steps {
				client := clients[r.IntN(len(clients))]
				theirs := slices.DeleteFunc(j.list("LRANGE", queueOf(j.name), "0", "-1"), own)
				switch r.IntN(8) {
				case 0, 1: // one of ours comes
					next++
					owner := fmt.Sprint(client, ":", next)
					waiting[client], line = append(waiting[client], owner), append(line, owner)
					call(client, "", false)
				case 2: // one of theirs comes
					next++
					if owner := fmt.Sprint("v:", next); j.fairLock(owner, redissonWait, "30000") == "(nil)" {
						holder = owner
					}
				case 3: // one of ours gives up
					if n := len(waiting[client]); n > 0 {
						gone := waiting[client][r.IntN(n)]
						keep := func(o string) bool { return o == gone }
						waiting[client], line = slices.DeleteFunc(waiting[client], keep), slices.DeleteFunc(line, keep)
						call(client, "", false)
					}
				case 4: // one of theirs gives up, or dies, which shows in time
					if len(theirs) > 0 {
						owner := theirs[r.IntN(len(theirs))]
						if score, _ := strconv.Atoi(j.command("ZSCORE", timeoutsOf(j.name), owner)); score > now()+1000 {
							j.fairGiveUp(owner, redissonWait)
						}
					}
				case 5:
					release()
				case 6: // who is first takes, if it is still awake
					if holder == "" && len(theirs) > 0 && j.fairLock(theirs[0], redissonWait, "30000") == "(nil)" {
						holder = theirs[0]
					} else if holder == "" && len(line) > 0 {
						client, _, _ := strings.Cut(line[0], ":")
						call(client, "", true)
					}
				case 7: // time goes by; the lock is renewed
					passed := 1 + r.IntN(silence/2)
					j.shift(1000*passed, j.list("ZRANGE", timeoutsOf(j.name), "0", "-1")...)
					for _, client := range clients {
						if heard[client] += passed; heard[client] >= silence/2 {
							call(client, "", false)
						}
					}
				}
				queue := j.list("LRANGE", queueOf(j.name), "0", "-1")
				if ours := slices.DeleteFunc(slices.Clone(queue), func(o string) bool { return !own(o) }); !slices.Equal(ours, line) {
					j.Fatalf("in the queue %q, should be %q", ours, line)
				}
				timed := j.list("ZRANGE", timeoutsOf(j.name), "0", "-1")
				slices.Sort(queue)
				slices.Sort(timed)
				if !slices.Equal(queue, timed) {
					j.Fatalf("queue %q, timeouts %q", queue, timed)
				}
				j.command("PEXPIRE", j.name, "30000")
			}
			release()
			for _, client := range clients {
				waiting[client], line = nil, nil
				call(client, "", false)
			}
			for _, owner := range j.list("LRANGE", queueOf(j.name), "0", "-1") {
				j.fairGiveUp(owner, redissonWait)
			}
			if left := j.command("KEYS", "*"+j.name+"*"); left != "[]" {
				j.Errorf("left behind: %s", left)
			}
		})
	}
}
