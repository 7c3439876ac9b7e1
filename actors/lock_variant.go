package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// ofLock is the variant of all locks.
type lockAdapter struct {
	backend.Backend
	s *lockState
}

func (v lockAdapter) fresh() machine {
	l := lock.New(&v.s.rt.cfg.Config, &v.s.kind)
	return &l
}

func (v lockAdapter) draft(of machine) machine {
	next := v.s.rt.locks.Get().(*lock.Lock)
	*next = *of.(*lock.Lock)
	next.SetBuffer(v.s.rt.buffers.Get().(*lock.Buffer))
	if !next.HasNextTerm() {
		next.SetNextTerm(v.s.rt.terms.Add(1))
	}
	return next
}

func (v lockAdapter) replaced(d machine) { v.s.rt.locks.Put(d) }

func (v lockAdapter) settled(d machine) {
	if buffer := d.(*lock.Lock).TakeBuffer(); buffer != nil {
		v.s.rt.buffers.Put(buffer)
	}
}

func (v lockAdapter) perform(e lock.Effect) {
	if e.Kind != lock.Send {
		return
	}
	s, command := v.s, *e.Command
	if command.Kind == lock.Acquire || command.Kind == lock.SyncQueue {
		s.note(nil, "tried", "", "")
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
	s.noteReply(m.result)
	stale := s.signals.replied(m.busy)
	s.handle(m, func(l machine, now lock.Instant) {
		l.(*lock.Lock).Replied(now, m.seq, m.result)
		if stale {
			l.Signal(now)
		}
	})
}

// No request comes here: what is not for locks was refused before.

func (v lockAdapter) called(*Call)             {}
func (v lockAdapter) received(any, *actor.PID) {}

func (v lockAdapter) describe(status *messages.Status, here *lock.Snapshot, _ *protocol.View) {
	if len(here.Tokens) > 0 && !v.s.kind.Parts {
		status.Token = here.Tokens[0]
	}
}

func (v lockAdapter) cleanups(d machine) (all []cleanup) {
	for _, command := range d.(*lock.Lock).CleanupCommands(v.s.rt.Now()) {
		all = append(all, cleanup{command.MaxTTL, func(done func(certain bool)) { v.CleanUp(command, done) }})
	}
	return all
}
