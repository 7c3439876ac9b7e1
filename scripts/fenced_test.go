package scripts_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func tokensOf(name string) string { return "redisson_lock_token:{" + name + "}" }

func TestFencedAcquire(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.FencedAcquire)
		for _, r := range []struct{ name, lock, counter, args, reply, lockIs, counterIs, again, counterAgain string }{
			{"free", "", "", "a 1 30000 1", "[1 1 ]", "a=1 30000", "'1'", "[1 2 ]", "'2'"},
			{"free, many tokens", "", "'7'", "a 1 30000 10", "[1 17 ]", "a=1 30000", "'17'", "[1 27 ]", "'27'"},
			{"free, without tokens", "", "'7'", "a 1 30000 0", "[1 0 ]", "a=1 30000", "'7'", "", ""},
			{"free, to re-enter", "", "'7'", "a 2 30000 1", "[-1 0 ]", "", "'7'", "", ""},
			{"own", "a=1 30000", "'7'", "a 1 60000 1", "[1 8 ]", "a=1 60000", "'8'", "[1 9 ]", "'9'"},
			{"own, once more", "a=1 30000", "'7'", "a 2 60000 0", "[1 0 ]", "a=2 60000", "'7'", "", ""},
			{"other", "b=2 60000", "'7'", "a 1 30000 1", "[0 60000 b]", "b=2 60000", "'7'", "", ""},
			{"other, to re-enter", "b=2 60000", "'7'", "a 2 30000 1", "[0 60000 b]", "b=2 60000", "'7'", "", ""},
			{"other, without end", "b=2", "'7'", "a 1 30000 1", "[0 -1 b]", "b=2", "'7'", "", ""},
			{"other, the counter would end", "b=2", "'7' 60000", "a 1 30000 1", "[0 -1 b]", "b=2", "'7' 60000", "", ""},
			{"the counter would end", "", "'7' 60000", "a 1 30000 1", "[1 8 ]", "a=1 30000", "'8'", "[1 9 ]", "'9'"},
			{"re-entered, the counter would end", "a=1 30000", "'7' 60000", "a 2 30000 0", "[1 0 ]", "a=2 30000", "'7'", "", ""},
			{"wrong type", "'x'", "'7'", "a 1 30000 1", "-WRONGTYPE", "'x'", "'7'", "", ""},
			{"counter of another type", "", "a=1", "a 1 30000 1", "-WRONGTYPE", "", "a=1", "", ""},
			{"counter that does not count", "", "'x'", "a 1 30000 1", "-", "", "'x'", "", ""},
		} {
			t.Run(r.name, func(t *testing.T) {
				name, start := redistest.Name(t), time.Now()
				db.put(t, name, r.lock)
				db.put(t, tokensOf(name), r.counter)
				for i := range 2 {
					reply, counter := r.reply, r.counterIs
					if i == 1 && r.again != "" {
						reply, counter = r.again, r.counterAgain
					}
					got := db.run(t, scripts.FencedAcquire, []string{name}, append(words(r.args), tokensOf(name)))
					if got = settleSecond(got, reply, start); got != reply && !isError(got, reply) {
						t.Errorf("run %d: reply %q, want %q", i, got, reply)
					}
					if got := db.state(t, name, r.lockIs, start); got != r.lockIs {
						t.Errorf("run %d: lock %q, want %q", i, got, r.lockIs)
					}
					if got := db.state(t, tokensOf(name), counter, start); got != counter {
						t.Errorf("run %d: counter %q, want %q", i, got, counter)
					}
				}
			})
		}
	})
}

// What was observed with Redisson: a token for each time it is taken, which is asked
// for here as Redisson would.
func TestFencedGolden(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.FencedAcquire)
		name, start := redistest.Name(t), time.Now()
		for _, step := range []struct{ args, reply, counter string }{
			{own + " 1 30000 1", "[1 1 ]" /* -1, 1 */, "'1'"},
			{own + " 2 30000 1", "[1 2 ]" /* -1, 2 */, "'2'"},
			{foreign + " 1 30000 1", "[0 30000 " + own + "]" /* 30000, -1 */, "'2'"},
		} {
			if reply := settleSecond(db.run(t, scripts.FencedAcquire, []string{name}, append(words(step.args), tokensOf(name))), step.reply, start); reply != step.reply {
				t.Errorf("%s: reply %q, want %q", step.args, reply, step.reply)
			}
			if counter := db.state(t, tokensOf(name), "", start); counter != step.counter {
				t.Errorf("%s: counter %s, want %s", step.args, counter, step.counter)
			}
		}
		if state, want := db.state(t, name, "30000", start), own+"=2 30000"; state != want {
			t.Errorf("lock %q, want %q", state, want)
		}
	})
}
