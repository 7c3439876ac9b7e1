package records

import (
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// Shown is the state of a lock that other goroutines may read without asking its actor. Only the actor writes it.
type Shown struct {
	// term is the term of the lease; 0 while the lock is not held here.
	term atomic.Uint64
	// since is the time at which the term began.
	since atomic.Int64
	// waiters is the number of requests that wait here.
	waiters atomic.Int64
}

// Set sets the state; term is 0 if the lock is not held here. Set compares first, since a store costs more than all the
// rest, and hand-offs change little.
func (s *Shown) Set(term uint64, waiters int, now time.Duration) {
	if s.term.Load() != term {
		if term != 0 {
			s.since.Store(int64(now))
		}
		s.term.Store(term)
	}
	if s.waiters.Load() != int64(waiters) {
		s.waiters.Store(int64(waiters))
	}
}

// maxLocks bounds the locks that are looked at for a record.
const maxLocks = 10_000

// Work collects for a record the locks that are held or waited for. Locks for which requests wait come first.
type Work struct {
	record       *Record
	waited, held []string
	looked       int
}

// WorkOf begins to collect for a record.
func WorkOf(record *Record) *Work {
	record.AllWaits = true
	return &Work{record: record}
}

// Add adds a lock with its keys, and reports whether more may be added.
func (w *Work) Add(keys []string, shown *Shown, now time.Duration) (more bool) {
	if w.looked++; w.looked > maxLocks {
		w.record.AllWaits = false
		return false
	}
	term, waiters := shown.term.Load(), int(shown.waiters.Load())
	age := max(now-time.Duration(shown.since.Load()), 0)
	for _, key := range keys {
		switch {
		case waiters > 0 && len(w.waited) < protocol.MaxBusy:
			w.waited = append(w.waited, protocol.Busy(key, term, age, waiters))
		case waiters > 0:
			w.record.AllWaits = false
		case term != 0 && len(w.held) < protocol.MaxBusy:
			w.held = append(w.held, protocol.Busy(key, term, age, 0))
		}
	}
	return true
}

// End writes the collected locks to the record.
func (w *Work) End() {
	w.record.Locks = append(w.waited, w.held[:min(len(w.held), protocol.MaxBusy-len(w.waited))]...)
}
