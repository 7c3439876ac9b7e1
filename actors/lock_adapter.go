package actors

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockAdapter is the kindAdapter of all locks.
type lockAdapter struct {
	backend.Backend
	s *lockState
}

func (v lockAdapter) fresh() machine.Machine {
	l := lock.New(&v.s.rt.cfg.Config, &v.s.kind)
	return &l
}

func (v lockAdapter) draft(of machine.Machine) machine.Machine {
	next := v.s.rt.locks.Get().(*lock.Lock)
	*next = *of.(*lock.Lock)
	next.SetBuffer(v.s.rt.buffers.Get().(*lock.Buffer))
	if !next.HasNextTerm() {
		next.SetNextTerm(v.s.rt.terms.Add(1))
	}
	return next
}

func (v lockAdapter) replaced(d machine.Machine) { v.s.rt.locks.Put(d) }

func (v lockAdapter) settled(d machine.Machine) {
	if buffer := d.(*lock.Lock).TakeBuffer(); buffer != nil {
		v.s.rt.buffers.Put(buffer)
	}
}

func (v lockAdapter) perform(e machine.Effect) {
	if e.Kind != machine.Send {
		return
	}
	s, command := v.s, *e.Ref.(*lock.Command)
	if command.Kind == lock.Acquire || command.Kind == lock.SyncQueue {
		s.observer.Tried()
	}
	if command.Kind == lock.Acquire {
		s.signals.tried()
	}
	if place := &command.Entry; place.Term != 0 {
		place.Listens = s.hearsTransfers(place.Term)
	}
	v.Run(command, time.Now().Add(command.Deadline-s.now)) // for the timers of package time
}

func (v lockAdapter) replied(m *replied) {
	s := v.s
	s.observeReply(m.result)
	stale := s.signals.replied(m.busy)
	s.handle(m, func(l machine.Machine, now machine.Instant) {
		l.(*lock.Lock).Replied(now, m.seq, m.result)
		if stale {
			l.Signal(now)
		}
	})
}

func (v lockAdapter) request(*request.Call) bool { return false }

func (v lockAdapter) describe(status *messages.Status, here *machine.Snapshot, _ *protocol.View) {
	if len(here.Tokens) > 0 && !v.s.kind.Parts {
		status.Token = here.Tokens[0]
	}
}

func (v lockAdapter) retires() {}
func (v lockAdapter) abandon() {}

func (v lockAdapter) giveUp(reason machine.Reason, detail string, _ bool) (all []cleanup) {
	before := v.s.endAll(reason, detail)
	for _, command := range before.(*lock.Lock).CleanupCommands(v.s.rt.Now()) {
		all = append(all, cleanup{command.MaxTTL, func(done func(certain bool)) { v.CleanUp(command, done) }})
	}
	return all
}

func (v lockAdapter) late(m *replied) {
	if m.result.Outcome == lock.Done {
		v.s.cleanUpAgain()
	}
}
