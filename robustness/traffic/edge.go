package traffic

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// edgeAge is how long a name is in use whose number is near an edge, and edgeWait how long a request waits.
const (
	edgeAge  = 3 * time.Second
	edgeWait = 300 * time.Millisecond
)

// The kinds of synchronizers whose numbers are near the edges, for the judge.
const (
	edgeSemaphore = "edge semaphore"
	edgeLatch     = "edge latch"
)

// EdgeName is the name of a kind that is in use now, or of a later one.
func EdgeName(kind Kind, after int) string {
	return fmt.Sprintf("%s-%s-%d", Edge, kind, int(history.Now()/edgeAge)+after)
}

// IsEdgeOf reports whether EdgeName has returned the name for a kind.
func IsEdgeOf(kind Kind, name string) bool {
	return strings.HasPrefix(name, fmt.Sprintf("%s-%s-", Edge, kind))
}

// atEdge uses a fenced lock, a semaphore or a latch whose number is near an edge.
func (w *worker) atEdge() {
	ctx, s := context.Background(), w.c.system
	switch w.random.IntN(4) {
	case 0:
		name, n := EdgeName(Semaphore, 0), 1+w.random.IntN(2)
		id := w.asking([]history.Part{{Lock: name, Kind: edgeSemaphore, Permits: n}}, 0, false, edgeWait)
		err := s.Semaphore(name).Acquire(w.r.ctx, n, lockkeeper.WithWait(edgeWait))
		w.granted(id, err)
		if err == nil {
			w.pause(w.style.Hold.Pick(w.random))
			w.r.out.Add(history.Event{Stage: history.Releasing, ID: id, At: history.Now()})
			e := history.Event{Stage: history.Released, ID: id}
			if err := s.Semaphore(name).Release(ctx, n); err != nil {
				e.Err, e.OutcomeUnknown = reason(err), true
			}
			e.At = history.Now()
			w.r.out.Add(e)
		}
	case 1:
		part := history.Part{Lock: EdgeName(Latch, 0), Kind: edgeLatch}
		if w.random.IntN(2) == 0 {
			id := w.asking([]history.Part{part}, 0, false, edgeWait)
			w.granted(id, s.Latch(part.Lock).Wait(w.r.ctx, lockkeeper.WithWait(edgeWait)))
			return
		}
		part.Action, part.Permits = history.Down, 1
		_ = w.change(part, w.c.plan.CallTimeout+250*time.Millisecond, func() error { return s.Latch(part.Lock).CountDown(ctx) })
	default:
		name := EdgeName(Fenced, 0)
		w.once(choice{lock: s.FencedLock(name), parts: []history.Part{{Lock: name, Kind: string(Fenced)}}})
	}
}
