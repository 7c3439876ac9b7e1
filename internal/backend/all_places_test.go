package backend

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A MultiLock gives up its places in other wait queues if a member that is free is kept for another MultiLock: one takes
// a and c apart, since b of another server is between them, the other by one script. Otherwise c would stay kept for the
// first, and a for the second.
func TestAll_LeavesItsPlacesToAnother(t *testing.T) {
	name := redistest.Name(t)
	on := []*Server{open(t, redistest.Start(t).URL()), open(t, redistest.Start(t).URL())}
	a, b, c := Part{Server: on[0], Name: name + "a"}, Part{Server: on[1], Name: name + "b"}, Part{Server: on[0], Name: name + "c"}
	apart, together := newAll([]Part{a, b, c}, options()), newAll([]Part{a, c}, options())
	holdA, holdC := newAll([]Part{a}, options()), newAll([]Part{c}, options())
	waits := term(8)
	waits.Entry = lock.Entry{Term: 8, TTL: time.Minute, Reserves: true}
	for i, step := range []struct {
		of   part
		c    lock.Command
		want lock.Outcome
	}{
		{holdC, take, lock.Done}, {apart, waits, lock.Refused}, // at c
		{holdA, take, lock.Done}, {together, waits, lock.Refused}, // at a
		{holdC, asRelease(take), lock.Done}, {apart, waits, lock.Refused}, // at a, and c is kept for it
		{holdA, asRelease(take), lock.Done}, {apart, waits, lock.Refused}, // at a, which is kept for the other
		{together, waits, lock.Refused}, {apart, waits, lock.Refused}, // a while later
		{together, waits, lock.Done}, {apart, waits, lock.Refused},
		{together, asRelease(waits), lock.Done}, {apart, waits, lock.Done},
	} {
		if i == 9 {
			apart.(*all).places.keptFrom = time.Now().Add(-keptTime)
		}
		if r := ran(t, step.of, step.c); r.Outcome != step.want {
			t.Fatalf("step %d: %+v", i, r)
		}
	}
}
