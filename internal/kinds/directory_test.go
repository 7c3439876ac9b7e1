package kinds

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// listed is a lock actor in a Directory.
type listed struct {
	call    *request.Call
	leaving atomic.Bool
}

func (l *listed) ListedAs() (Key, messages.Kind) { return KeyOf(l.call), Of(l.call.Kind).StoredAs }
func (l *listed) Leaving() bool                  { return l.leaving.Load() }

func listedFor(op request.Op, kind messages.Kind) *listed {
	return &listed{call: &request.Call{Op: op, Name: "a", Kind: kind}}
}

func (l *listed) addTo(d *Directory[*listed]) bool { return d.Add(l, l.call) }

// A key in Redis has one actor, whatever it is used as, until that leaves.
func TestDirectory_HasOneActorOfAKey(t *testing.T) {
	var d Directory[*listed]
	first := listedFor(request.OpAcquire, messages.Kind_KIND_PLAIN)
	if !first.addTo(&d) || d.Get(KeyOf(first.call)) != first {
		t.Fatal("the first is not there")
	}
	next := listedFor(request.OpAcquire, messages.Kind_KIND_FAIR)
	latch := listedFor(request.OpAcquire, messages.Kind_KIND_LATCH)
	if next.addTo(&d) || latch.addTo(&d) {
		t.Error("another was added")
	}
	if release := listedFor(request.OpRelease, messages.Kind_KIND_SEMAPHORE); !release.addTo(&d) {
		t.Error("a release of another type does not reach Redis")
	} else {
		d.Remove(release)
	}
	first.leaving.Store(true)
	if !latch.addTo(&d) || next.addTo(&d) {
		t.Error("one is to be added for one that leaves")
	}
	latch.leaving.Store(true)
	if !next.addTo(&d) {
		t.Error("none was added for one that leaves")
	}
	if d.Remove(first); d.Get(KeyOf(first.call)) != next {
		t.Error("the next was removed instead of the one that has left")
	}
}

// Of several actors that are added at the same time, one is added.
func TestDirectory_AddsOneOfMany(t *testing.T) {
	for range 100 {
		var d Directory[*listed]
		var added atomic.Int32
		var all sync.WaitGroup
		begin := make(chan struct{})
		for _, kind := range []messages.Kind{messages.Kind_KIND_PLAIN, messages.Kind_KIND_SEMAPHORE, messages.Kind_KIND_LATCH} {
			for range 2 {
				all.Go(func() {
					<-begin
					if listedFor(request.OpAcquire, kind).addTo(&d) {
						added.Add(1)
					}
				})
			}
		}
		close(begin)
		if all.Wait(); added.Load() != 1 {
			t.Fatalf("%d were added", added.Load())
		}
	}
}
