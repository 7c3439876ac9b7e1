package scripts_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// patience is how long a silent waiter counts as alive, in the rows.
const patience = "300000"

// A queue is written as its owners, first to last, each with the seconds from the
// start of the test to its timeout: "v:1@300 v:2@600"; "v:1" has none.

func queueOf(name string) string    { return "redisson_lock_queue:{" + name + "}" }
func timeoutsOf(name string) string { return "redisson_lock_timeout:{" + name + "}" }

// fairNames are what the scripts take besides the lock's key.
func fairNames(name string) []string {
	return []string{queueOf(name), timeoutsOf(name), channelOf(name)}
}

func (d *db) putQueue(t *testing.T, name, queue string, start time.Time) {
	t.Helper()
	for word := range strings.FieldsSeq(queue) {
		owner, seconds, timed := strings.Cut(word, "@")
		d.do(t, "RPUSH", queueOf(name), owner)
		if timed {
			d.do(t, "ZADD", timeoutsOf(name), at(t, seconds, start), owner)
		}
	}
}

func at(t *testing.T, seconds string, start time.Time) string {
	t.Helper()
	s, err := strconv.Atoi(seconds)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatInt(start.UnixMilli()+1000*int64(s), 10)
}

// queue reads a queue. A timeout that agrees with the one in want, apart from the
// time since the start of the test, is given as want has it. A timeout of somebody
// who is not in the queue comes behind it, as "+owner".
func (d *db) queue(t *testing.T, name, want string, start time.Time) string {
	t.Helper()
	passed := int(time.Since(start).Milliseconds()) + 2
	wanted := map[string]string{}
	for word := range strings.FieldsSeq(want) {
		owner, seconds, _ := strings.Cut(word, "@")
		wanted[owner] = seconds
	}
	line, err := d.command(t, "LRANGE", queueOf(name), "0", "-1").AsStrSlice()
	if err != nil {
		t.Fatalf("LRANGE: %v", err)
	}
	var words []string
	for _, owner := range line {
		score := d.do(t, "ZSCORE", timeoutsOf(name), owner)
		ms, err := strconv.Atoi(score)
		after := ms - int(start.UnixMilli())
		seconds, _ := strconv.Atoi(wanted[owner])
		switch {
		case score == "(nil)":
			words = append(words, owner)
		case err != nil || len(score) != 13:
			t.Errorf("the timeout of %s is %q", owner, score)
		case wanted[owner] != "" && after >= 1000*seconds-2 && after <= 1000*seconds+passed:
			words = append(words, owner+"@"+wanted[owner])
		default:
			words = append(words, fmt.Sprintf("%s@%.3f", owner, float64(after)/1000))
		}
	}
	all, err := d.command(t, "ZRANGE", timeoutsOf(name), "0", "-1").AsStrSlice()
	if err != nil {
		t.Fatalf("ZRANGE: %v", err)
	}
	for _, owner := range all {
		if !slices.Contains(line, owner) {
			words = append(words, "+"+owner)
		}
	}
	return strings.Join(words, " ")
}

// fairRow is one run of fair_queue for the client "u", and the same run once more.
type fairRow struct {
	name   string
	lock   string // before
	queue  string // before
	listen string // who of the waiters listens
	args   string // the arguments, without the client and its patience; "-" is ""
	reply  string
	lockIs string // after
	now    string // the queue after
	told   string // who is told

	again    string // the second reply, if it differs
	nowAgain string // the queue after the second run, if it differs
}

func checkFair(t *testing.T, rows []fairRow) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.FairQueue)
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				name, start := redistest.Name(t), time.Now()
				db.put(t, name, r.lock)
				db.putQueue(t, name, r.queue, start)
				for owner := range strings.FieldsSeq(r.listen) {
					db.subscribe(t, channelOf(name)+":"+owner, 1)
				}
				args := fairArgs(name, r.args)
				for i := range 2 {
					reply, queue, told := r.reply, r.now, strings.Fields(r.told)
					if i == 1 {
						told = nil
						if r.again != "" {
							reply = r.again
						}
						if r.nowAgain != "" {
							queue = r.nowAgain
						}
					}
					if got := settleSecond(db.run(t, scripts.FairQueue, []string{name}, args), reply, start); got != reply && !isError(got, reply) {
						t.Errorf("run %d: reply %q, want %q", i, got, reply)
					}
					if got := db.state(t, name, r.lockIs, start); got != r.lockIs {
						t.Errorf("run %d: lock %q, want %q", i, got, r.lockIs)
					}
					if got := db.queue(t, name, queue, start); got != queue {
						t.Errorf("run %d: queue %q, want %q", i, got, queue)
					}
					if got := db.told(t, channelOf(name)+":"); !slices.Equal(got, told) {
						t.Errorf("run %d: told %q, want %q", i, got, told)
					}
				}
			})
		}
	})
}

// fairArgs makes the arguments of the client "u" from those of a row.
func fairArgs(name, args string) []string {
	given := words(args)
	return slices.Concat([]string{"u"}, given[:3], []string{patience}, fairNames(name), given[3:])
}

// settleSecond is settleReply for a TTL that is the second element of a reply.
func settleSecond(reply, want string, since time.Time) string {
	got, wanted := strings.SplitN(reply, " ", 3), strings.SplitN(want, " ", 3)
	if len(got) == 3 && len(wanted) == 3 {
		got[1] = settle(got[1], wanted[1], since)
	}
	return strings.Join(got, " ")
}

func TestFairEnqueue(t *testing.T) {
	checkFair(t, []fairRow{
		{name: "as Redisson does, behind a holder", lock: "v:1=1 30000", args: "- 1 9 u:1 30000 1 u:2 30000 1 u:3 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "u:1@330 u:2@630 u:3@930", nowAgain: "u:1@300 u:2@600 u:3@900"},
		{name: "behind a holder without end", lock: "v:1=1", args: "- 1 9 u:1 30000 1",
			reply: "[0 -1 v:1 ]", lockIs: "v:1=1", now: "u:1@300"},
		{name: "behind a stranger", lock: "v:1=1 30000", queue: "v:2@100", args: "- 1 9 u:1 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "v:2@100 u:1@400"},
		{name: "behind the latest of all", lock: "v:1=1 30000", queue: "v:2@500 v:3@100", args: "- 1 9 u:1 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "v:2@500 v:3@100 u:1@800"},
		{name: "behind one who is dead, but not the first", lock: "v:1=1 30000", queue: "v:2@10 w:3@-50", args: "- 1 9 u:1 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "v:2@10 w:3@-50 u:1@310"},
		{name: "not one who tries once", lock: "v:1=1 30000", args: "- 1 9 u:1 30000 0",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000"},
		{name: "a free lock that may not be taken", args: "- 0 9 u:1 30000 1", reply: "[0 0  ]", now: "u:1@300"},
		{name: "behind the own holder", lock: "u:1=2 30000", args: "- 1 9 u:2 30000 1",
			reply: "[0 30000 u:1 ]", lockIs: "u:1=2 30000", now: "u:2@330", nowAgain: "u:2@300"},
	})
}

func TestFairRefresh(t *testing.T) {
	checkFair(t, []fairRow{
		{name: "in a chain", lock: "v:1=1 30000", queue: "u:1@7 u:2@8 u:3@2000", args: "- 1 9 u:1 30000 1 u:2 30000 1 u:3 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "u:1@300 u:2@600 u:3@900"},
		{name: "each of those listed, in the order of the queue", lock: "v:1=1 30000", queue: "u:2@7 u:1@8", args: "- 1 9 u:1 30000 1 u:2 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "u:2@300 u:1@600"},
		{name: "around strangers", lock: "v:1=1 30000", queue: "u:1@7 v:2@450 v:3@100 u:2@8 v:4@9", args: "- 1 9 u:1 30000 1 u:2 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "u:1@300 v:2@450 v:3@100 u:2@750 v:4@9"},
		{name: "one that seemed dead", lock: "v:1=1 30000", queue: "u:1@-100 v:2@200", args: "- 1 9 u:1 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "u:1@300 v:2@200"},
		{name: "one without a timeout", lock: "v:1=1 30000", queue: "u:1 v:2@200", args: "- 1 9 u:1 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "u:1@300 v:2@200"},
		{name: "not one that is not listed", lock: "v:1=1 30000", queue: "u:5@70 u:1@100", args: "- 1 4 u:1 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: "v:1=1 30000", now: "u:5@70 u:1@370"},
	})
}

func TestFairLeave(t *testing.T) {
	const held = "v:1=1 30000"
	checkFair(t, []fairRow{
		{name: "those behind move up", lock: held, queue: "v:2@330 u:1@630 v:3@930 v:4@1230", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "v:2@330 v:3@630 v:4@930"},
		{name: "those behind move up alike", lock: held, queue: "u:1@330 v:2@630 v:3@2000 v:4@2100", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "v:2@330 v:3@1700 v:4@1800"},
		{name: "two in one place", lock: held, queue: "v:2@330 u:1@630 u:2@930 v:3@1230 v:4@1530", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "v:2@330 v:3@630 v:4@930"},
		{name: "two in two places", lock: held, queue: "u:1@330 v:2@630 u:2@930 v:3@1230", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "v:2@330 v:3@630"},
		{name: "nobody is dead for it", lock: held, queue: "u:1@300 v:2@40 v:3@340", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "v:2@40 v:3@340"},
		{name: "nobody loses what those before have", lock: held, queue: "v:2@330 u:1@630 v:3@640 v:4@940", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "v:2@330 v:3@630 v:4@930"},
		{name: "not those listed", lock: held, queue: "u:1@330 u:2@630 u:3@930", args: "- 1 9 u:2 30000 1",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "u:2@300"},
		{name: "not later ones", lock: held, queue: "u:9@330 u:10@630", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "u:10@330"},
		{name: "none", lock: held, queue: "u:1@330", args: "- 1 0",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "u:1@330"},
		{name: "not those of others", lock: held, queue: "uu:1@330 v:1:u:1@630 u:x@930 u:1:1@1230", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "uu:1@330 v:1:u:1@630 u:x@930 u:1:1@1230"},
		{name: "the first waiter of a free lock", listen: "v:2", queue: "u:1@330 v:2@630", args: "- 0 9",
			reply: "[0 330000  ]", now: "v:2@330", told: "v:2"},
		{name: "the last in the queue of a free lock", listen: "v:2", queue: "v:2@330 u:1@630", args: "- 0 9",
			reply: "[0 330000  ]", now: "v:2@330"},
		{name: "the first waiter, and the next is listed", queue: "u:1@330 u:2@630", args: "- 0 9 u:2 30000 1",
			reply: "[0 0  ]", now: "u:2@300"},
	})
}

// Whoever is not heard of for long goes, but only from the front: those behind have
// until those before them are through.
func TestFairDead(t *testing.T) {
	const held = "v:1=1 30000"
	checkFair(t, []fairRow{
		{name: "first of a held lock", lock: held, queue: "v:2@-1 w:3@299 x:4@599", args: "- 1 9",
			reply: "[0 30000 v:1 ]", lockIs: held, now: "w:3@299 x:4@599"},
		{name: "first of a free lock", queue: "v:2@-1 w:3@299", args: "- 1 9",
			reply: "[0 299000  ]", now: "w:3@299", told: "w:3"},
		{name: "without a timeout", queue: "v:2 w:3@299", args: "- 1 9",
			reply: "[0 299000  ]", now: "w:3@299", told: "w:3"},
		{name: "several", queue: "v:2@-1 w:3 x:4@-5 y:5@40", args: "- 1 9",
			reply: "[0 40000  ]", now: "y:5@40", told: "y:5"},
		{name: "all", queue: "v:2@-1 w:3", args: "- 1 9", reply: "[0 0  ]"},
		{name: "before one who is listed", queue: "v:2@-1 u:1@5", args: "- 0 9 u:1 30000 1",
			reply: "[0 0  ]", now: "u:1@300"},
		{name: "not yet", queue: "v:2@50 w:3@-1", args: "- 1 9",
			reply: "[0 50000  ]", now: "v:2@50 w:3@-1"},
		{name: "who cannot be told has its patience from now on", queue: "v:2@360 w:3@660 v:4@960", args: "- 1 9",
			reply: "[0 300000  ]", now: "v:2@300 w:3@600 v:4@900"},
		{name: "who cannot be told, while the lock is held", lock: "w:9=1 60000", queue: "v:2@360 w:3@660", args: "- 1 9",
			reply: "[0 60000 w:9 ]", lockIs: "w:9=1 60000", now: "v:2@360 w:3@660"},
		{name: "who can be told keeps its time", listen: "v:2", queue: "v:2@360 w:3@660", args: "- 1 9",
			reply: "[0 360000  ]", now: "v:2@360 w:3@660"},
		{name: "a client with many", queue: "v:2@-1 v:3@299 v:4@599 w:5@899 x:6@1199", args: "- 1 9",
			reply: "[0 300000  ]", now: "w:5@300 x:6@600", told: "w:5"},
		{name: "a client with many, here and there", queue: "v:2@-1 w:3@299 v:4@599 w:5@899 v:6@1199 x:7@1499", args: "- 1 9",
			reply: "[0 299000  ]", now: "w:3@299 w:5@599 x:7@899", told: "w:3"},
		{name: "not who listens", listen: "v:3", queue: "v:2@-1 v:3@299 v:4@599", args: "- 1 9",
			reply: "[0 299000  ]", now: "v:3@299", told: "v:3"},
		{name: "not who listens, of those without a timeout", listen: "v:2", queue: "v:2 w:3@299", args: "- 1 9",
			reply: "[0 299000  ]", now: "w:3@299", told: "w:3"},
	})
}

func TestFairTake(t *testing.T) {
	checkFair(t, []fairRow{
		{name: "a free lock", args: "- 1 9 u:1 40000 1", reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000"},
		{name: "the others wait", args: "- 1 9 u:1 40000 1 u:2 30000 1 u:3 30000 1",
			reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000", now: "u:2@340 u:3@640", nowAgain: "u:2@300 u:3@600"},
		{name: "by the first in the queue", queue: "u:1@330 v:2@630 u:3@930 v:4@1230", args: "- 1 9 u:1 40000 1 u:3 30000 1",
			reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000", now: "v:2@330 u:3@630 v:4@930"},
		{name: "nobody is dead for it", queue: "u:1@300 v:2@40 v:3@340", args: "- 1 9 u:1 40000 1",
			reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000", now: "v:2@40 v:3@340"},
		{name: "by the first in the queue, not the first listed", queue: "u:2@330 u:1@630", args: "- 1 9 u:1 30000 1 u:2 40000 1",
			reply: "[1 0 u:2 ]", lockIs: "u:2=1 40000", now: "u:1@300"},
		{name: "behind the dead", queue: "v:2@-1 u:1@299 w:3@599", args: "- 1 9 u:1 40000 1",
			reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000", now: "w:3@300"},
		{name: "behind those who leave", queue: "u:1@330 u:2@630 v:3@930", args: "- 1 9 u:2 40000 1",
			reply: "[1 0 u:2 ]", lockIs: "u:2=1 40000", now: "v:3@330"},
		{name: "not behind a stranger", queue: "v:2@100 u:1@400", args: "- 1 9 u:1 40000 1",
			reply: "[0 100000  ]", now: "v:2@100 u:1@400"},
		{name: "not unless allowed", queue: "u:1@330", args: "- 0 9 u:1 40000 1", reply: "[0 0  ]", now: "u:1@300"},
		{name: "by one who tries once", args: "- 1 9 u:1 40000 0", reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000"},
		{name: "by one who tries once, not unless allowed", args: "- 0 9 u:1 40000 0", reply: "[0 0  ]"},
		{name: "by one who tries once, behind the dead", queue: "v:2@-1 w:3", args: "- 1 9 u:1 40000 0", reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000"},
		{name: "not by one who tries once, past a queue", queue: "v:2@100", args: "- 1 9 u:1 40000 0",
			reply: "[0 100000  ]", now: "v:2@100"},
		{name: "by one who waits, not who tries", args: "- 1 9 u:1 30000 0 u:2 40000 1",
			reply: "[1 0 u:2 ]", lockIs: "u:2=1 40000"},
		{name: "by one of two who try", args: "- 1 9 u:2 30000 0 u:1 40000 0", reply: "[1 0 u:2 ]", lockIs: "u:2=1 30000"},
	})
}

// Who holds the lock already had a reply that was lost.
func TestFairTaken(t *testing.T) {
	checkFair(t, []fairRow{
		{name: "under a shorter lease", lock: "u:1=1 10000", args: "- 1 9 u:1 40000 1", reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000"},
		{name: "under a longer lease", lock: "u:1=1 90000", args: "- 1 9 u:1 40000 1", reply: "[1 0 u:1 ]", lockIs: "u:1=1 90000"},
		{name: "without an end", lock: "u:1=1", args: "- 1 9 u:1 40000 1", reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000"},
		{name: "more than once", lock: "u:1=3 10000", args: "- 1 9 u:1 40000 1", reply: "[1 0 u:1 ]", lockIs: "u:1=3 40000"},
		{name: "by a try", lock: "u:1=1 10000", args: "- 0 9 u:1 40000 0", reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000"},
		{name: "while others wait", lock: "u:2=1 10000", queue: "u:1@100 v:2@400", args: "- 1 9 u:1 30000 1 u:2 40000 1 u:3 30000 1",
			reply: "[1 0 u:2 ]", lockIs: "u:2=1 40000", now: "u:1@300 v:2@400 u:3@700"},
		{name: "and still in the queue", lock: "u:1=1 10000", queue: "u:1@100 v:2@400", args: "- 1 9 u:1 40000 1",
			reply: "[1 0 u:1 ]", lockIs: "u:1=1 40000", now: "v:2@300"},
	})
}

func TestFairPass(t *testing.T) {
	checkFair(t, []fairRow{
		{name: "to nobody", lock: "u:1=1 30000", args: "u:1 0 9", reply: "[0 0  1]", again: "[0 0  0]"},
		{name: "to a stranger", listen: "v:2", lock: "u:1=2 30000", queue: "v:2@330 v:3@630", args: "u:1 0 9",
			reply: "[0 330000  1]", now: "v:2@330 v:3@630", told: "v:2", again: "[0 330000  0]"},
		{name: "to a stranger behind the dead", lock: "u:1=1 30000", queue: "v:2@-1 w:3@299", args: "u:1 0 9",
			reply: "[0 299000  1]", now: "w:3@299", told: "w:3", again: "[0 299000  0]"},
		{name: "to a stranger, and wait again", listen: "v:2", lock: "u:1=1 30000", queue: "v:2@330", args: "u:1 1 9 u:2 30000 1",
			reply: "[0 330000  1]", now: "v:2@330 u:2@630", told: "v:2", again: "[0 330000  0]"},
		{name: "to an own waiter, at once", lock: "u:1=1 30000", queue: "u:2@330 v:3@630", args: "u:1 1 9 u:2 40000 1",
			reply: "[1 0 u:2 1]", lockIs: "u:2=1 40000", now: "v:3@330", again: "[1 0 u:2 0]"},
		{name: "to an own waiter that is new", lock: "u:1=1 30000", args: "u:1 1 9 u:2 40000 1",
			reply: "[1 0 u:2 1]", lockIs: "u:2=1 40000", again: "[1 0 u:2 0]"},
		{name: "to an own waiter, later", lock: "u:1=1 30000", queue: "u:2@330", args: "u:1 0 9 u:2 40000 1",
			reply: "[0 0  1]", now: "u:2@300", again: "[0 0  0]"},
		{name: "to an own waiter that is not listed", lock: "u:1=1 30000", queue: "u:20@330", args: "u:1 0 0",
			reply: "[0 330000  1]", now: "u:20@330", told: "u:20", again: "[0 330000  0]"},
		{name: "what a stranger holds", lock: "v:1=1 30000", queue: "v:2@330", args: "u:1 1 9",
			reply: "[0 30000 v:1 0]", lockIs: "v:1=1 30000", now: "v:2@330"},
		{name: "what nobody holds", listen: "v:2", queue: "v:2@330", args: "u:1 1 9", reply: "[0 330000  0]", now: "v:2@330"},
	})
}

func TestFairUntouched(t *testing.T) {
	checkFair(t, []fairRow{
		{name: "nothing", args: "- 1 9", reply: "[0 0  ]"},
		{name: "a lock of another type", lock: "'x'", queue: "u:1@5 v:2@-5", args: "- 1 9 u:2 30000 1",
			reply: "-WRONGTYPE", lockIs: "'x'", now: "u:1@5 v:2@-5"},
		{name: "a lock of another type, to release", lock: "'x'", queue: "u:1@5", args: "u:3 1 9",
			reply: "-WRONGTYPE", lockIs: "'x'", now: "u:1@5"},
	})
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.FairQueue)
		for _, wrong := range []func(string) string{queueOf, timeoutsOf} {
			name, start := redistest.Name(t), time.Now()
			db.put(t, name, "u:1=1 30000")
			db.put(t, wrong(name), "'x'")
			if reply := db.run(t, scripts.FairQueue, []string{name}, fairArgs(name, "u:1 1 9 u:2 30000 1")); !isError(reply, "-WRONGTYPE") {
				t.Errorf("reply %s", reply)
			}
			if state := db.state(t, name, "u:1=1 30000", start); state != "u:1=1 30000" {
				t.Errorf("lock %q", state)
			}
		}
	})
}

// Timeouts of nobody in the queue, which would keep a Redisson client from queueing, and
// short TTLs, which would make Redis forget the queue: it is kept for ten minutes longer than
// its last waiter counts as alive.
func TestFairMends(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.FairQueue)
		name, start := redistest.Name(t), time.Now()
		db.putQueue(t, name, "v:2@100", start)
		for _, owner := range []string{"v:3", "u:1", "u:2"} {
			db.do(t, "ZADD", timeoutsOf(name), at(t, "50", start), owner)
		}
		db.do(t, "PEXPIRE", queueOf(name), "60000")
		db.do(t, "PEXPIRE", timeoutsOf(name), "60000")
		db.run(t, scripts.FairQueue, []string{name}, fairArgs(name, "- 1 9 u:2 30000 1"))
		if queue, want := db.queue(t, name, "v:2@100 u:2@400", start), "v:2@100 u:2@400"; queue != want {
			t.Errorf("queue %q, want %q", queue, want)
		}
		for _, key := range []string{queueOf(name), timeoutsOf(name)} {
			if ttl := settle(db.do(t, "PTTL", key), "1000000", start); ttl != "1000000" {
				t.Errorf("%s has a TTL of %s", key, ttl)
			}
		}
	})
}

func TestFairForceRelease(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.FairForceRelease)
		for _, r := range []struct{ name, lock, queue, reply, lockIs, now, told string }{
			{"held", "v:1=2 30000", "v:2@330 w:3@630", "1", "", "v:2@330 w:3@630", "v:2"},
			{"nobody waits", "v:1=1", "", "1", "", "", ""},
			{"the dead wait", "v:1=1 30000", "v:2@-1 w:3 x:4@300", "1", "", "x:4@300", "x:4"},
			{"only the dead wait", "v:1=1 30000", "v:2@-1 w:3", "1", "", "", ""},
			{"free", "", "v:2@330", "0", "", "v:2@330", ""},
			{"free, behind the dead", "", "v:2@-1 w:3@330", "0", "", "w:3@330", "w:3"},
			{"wrong type", "'x'", "v:2@-1", "-WRONGTYPE", "'x'", "v:2@-1", ""},
		} {
			t.Run(r.name, func(t *testing.T) {
				name, start := redistest.Name(t), time.Now()
				db.put(t, name, r.lock)
				db.putQueue(t, name, r.queue, start)
				told := strings.Fields(r.told)
				for i, reply := range []string{r.reply, "0"} {
					if got := db.run(t, scripts.FairForceRelease, []string{name}, fairNames(name)); got != reply && !isError(got, r.reply) {
						t.Errorf("run %d: reply %s, want %s", i, got, reply)
					}
					if got := db.state(t, name, r.lockIs, start); got != r.lockIs {
						t.Errorf("run %d: lock %q, want %q", i, got, r.lockIs)
					}
					if got := db.queue(t, name, r.now, start); got != r.now {
						t.Errorf("run %d: queue %q, want %q", i, got, r.now)
					}
					if got := db.told(t, channelOf(name)+":"); !slices.Equal(got, told) {
						t.Errorf("run %d: told %q, want %q", i, got, told)
					}
					told = nil
				}
			})
		}
	})
}

func TestFairInspect(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.FairInspect)
		for _, r := range []struct{ lock, queue, reply string }{
			{"v:1=2 30000", "v:2@330 w:3@630", "[30000 2 v:1 2]"},
			{"v:1=1", "", "[-1 0 v:1 1]"},
			{"", "v:2@-1", "[-2 1  ]"},
			{"'x'", "", "-WRONGTYPE"},
		} {
			name, start := redistest.Name(t), time.Now()
			db.put(t, name, r.lock)
			db.putQueue(t, name, r.queue, start)
			if got := settleReply(db.run(t, scripts.FairInspect, []string{name}, fairNames(name)[:1]), r.reply, start); got != r.reply && !isError(got, r.reply) {
				t.Errorf("%s, %s: reply %q, want %q", r.lock, r.queue, got, r.reply)
			}
			if got := db.queue(t, name, r.queue, start); got != r.queue {
				t.Errorf("queue %q, want %q", got, r.queue)
			}
		}
	})
}
