package actors

import (
	"strconv"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// A server that is down for long is sent a few releases at a time, those that have waited
// longest first, and none whose TTL is over.
func TestCleanupsAreTakenInTurn(t *testing.T) {
	const now = time.Hour
	k := cleanups{rt: &Runtime{}}
	k.running = true // no timer
	for i := range 10 {
		until := now + time.Minute
		if i%2 == 0 {
			until = now
		}
		k.add(cleanup{owner: strconv.Itoa(i), until: until})
	}
	owners := func(batch []cleanup) (owners string) {
		for _, c := range batch {
			owners += c.owner
		}
		return owners
	}
	batch := k.take(3, now)
	if got := owners(batch); got != "135" {
		t.Errorf("the first are %s", got)
	}
	for i, v := range []verdict{failing(true, true), outcome(core.Absent), failing(false, false)} {
		if owed, want := k.answered(batch[i], v), i == 0; owed != want {
			t.Errorf("%v: owed: %v", v.Result, owed)
		}
	}
	if until := time.Duration(k.rt.leftUntil.Load()); until != now+time.Minute {
		t.Errorf("what has failed for good is left behind until %v", until)
	}
	if k.complete() {
		t.Error("complete, with three left")
	}
	if got := owners(k.take(5, now)); got != "791" {
		t.Errorf("then come %s", got)
	}
	if k.complete() {
		t.Error("complete, with three under way")
	}
}
