package actors

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// introduce has the system say who it is, if it is to.
func (r *Runtime) introduce() {
	if r.cfg.Record == nil {
		return
	}
	own := *r.cfg.Record
	own.Client = r.id
	r.cfg.Record = &own
	r.server.Register(own, r.cfg.Watchdog, r.busy, func(err error) {
		r.host.Warn("Redis refuses the record of this system: no program can see which process holds its locks", "error", err)
	})
}

// KeepsStacks reports whether holders are to keep their stacks.
func (r *Runtime) KeepsStacks() bool { return r.cfg.HoldStacks }

// Closed reports whether Close was called.
func (r *Runtime) Closed() bool { return r.closed.Load() }

// processOf is a record as package messages spells it.
func processOf(r protocol.Record) *messages.Process {
	p := &messages.Process{
		Client: r.Client, Application: r.Application, Host: r.Host, Pid: int64(r.PID), Version: r.Version,
		Seen: durationpb.New(r.Seen), Overdue: r.Overdue(),
	}
	if !r.Since.IsZero() {
		p.Since = timestamppb.New(r.Since)
	}
	return p
}

// ErrMore is that there are more systems than Systems has returned.
var ErrMore = backend.ErrMore

// Systems returns the processes of all systems that have a record in this Redis; ctx bounds the
// wait.
func (r *Runtime) Systems(ctx context.Context) ([]*messages.Process, error) {
	type answer struct {
		records []protocol.Record
		err     error
	}
	answers := make(chan answer, 1)
	r.server.Records(ctx.Done(), func(records []protocol.Record, err error) { answers <- answer{records, err} })
	select {
	case a := <-answers:
		var all []*messages.Process
		for _, one := range a.records {
			all = append(all, processOf(one))
		}
		return all, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// shown is what other goroutines may read of a lock without asking its actor, for the record of the System. The actor
// alone writes it.
type shown struct {
	// term is that of the lease, 0 while the lock is not held here, and since is when it began.
	term  atomic.Uint64
	since atomic.Int64
	// waiters is how many requests wait here.
	waiters atomic.Int64
}

// show keeps up to date what others read of the lock. It compares, since a store costs more than all the rest, and
// hand-offs change little.
func (s *lockState) show() {
	if until := int64(s.lock.LeaseUntil()); s.until.Load() != until {
		s.until.Store(until)
	}
	held, waiters, _ := s.lock.Load()
	term := s.lock.Term()
	if held == 0 {
		term = 0
	}
	if s.shown.term.Load() != term {
		if term != 0 {
			s.shown.since.Store(int64(s.now))
		}
		s.shown.term.Store(term)
	}
	if s.shown.waiters.Load() != int64(waiters) {
		s.shown.waiters.Store(int64(waiters))
	}
}

// mostLooked bounds the locks that are looked at for the record.
const mostLooked = 10_000

// busy adds to the record the locks that are held or waited for here. Those that requests wait for come first.
func (r *Runtime) busy(record *Record) {
	var waited, held []string
	record.AllWaits = true
	looked := 0
	for _, made := range []composition{ofOneKey, ofMembers, ofServers} {
		r.table.states[made].Range(func(_, value any) bool {
			if looked++; looked > mostLooked {
				record.AllWaits = false
				return false
			}
			s := value.(*lockState)
			if s.format == messages.Kind_KIND_EXPIRABLE_SEMAPHORE {
				return true
			}
			term, waiters := s.shown.term.Load(), int(s.shown.waiters.Load())
			age := time.Duration(max(int64(r.Now())-s.shown.since.Load(), 0))
			for _, key := range s.keys() {
				switch {
				case waiters > 0 && len(waited) < protocol.MostBusy:
					waited = append(waited, protocol.Busy(key, term, age, waiters))
				case waiters > 0:
					record.AllWaits = false
				case term != 0 && len(held) < protocol.MostBusy:
					held = append(held, protocol.Busy(key, term, age, 0))
				}
			}
			return true
		})
	}
	record.Locks = append(waited, held[:min(len(held), protocol.MostBusy-len(waited))]...)
}

// keys are those of the lock in Redis: several for a MultiLock.
func (s *lockState) keys() (keys []string) {
	if s.key.made != ofMembers {
		return []string{s.rt.cfg.KeyPrefix + s.key.name}
	}
	for _, each := range s.members {
		keys = append(keys, each.System.Rules().KeyPrefix+each.Name)
	}
	return keys
}
