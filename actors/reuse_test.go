package actors

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// leave makes an idle lock actor leave its shell to the next.
func (r *Runtime) leave(t *testing.T, name string) (left *lockActor) {
	t.Helper()
	left = r.locks.Get(kinds.Key{Name: name})
	r.crowded.Store(true)
	left.post(leaveIfIdle{left})
	redistest.Eventually(t, "the lock actor to leave", func() bool { return left.shell.Tenant() == nil })
	return left
}

// A message that comes for a lock when another one has its PID does not touch that: a request goes back to the guardian,
// and is carried out for its own lock.
func TestStaleMessage_ReachesNoOtherLock(t *testing.T) {
	r, name := start(t, time.Hour), redistest.Name(t)
	r.use(t, name)
	stale := r.leave(t, name)
	held := &request.Call{Op: request.OpAcquire, Name: name + "next"}
	granted := r.call(t, held)
	next := r.locks.Get(kinds.KeyOf(held))
	if next.pid != stale.pid {
		t.Fatal("the next lock has a PID of its own")
	}
	force := &request.Call{Op: request.OpForceRelease, Name: name}
	stale.post(force)
	if _, out := force.Future.Await(nil); out.Kind != machine.ForceReleased || out.Count != 0 {
		next.gate.Enter() // it has seen one more than were sent, and would not leave
		t.Fatalf("the forced release of a free lock is answered %+v", out)
	}
	of := func(s *lockActor) []any {
		return []any{
			&kinds.Reply{To: s}, wakeUp{s}, unlocked{to: s}, listening{to: s}, &transferred{to: s}, suspicion{s}, leaveIfIdle{s}, &again{suspicion{s}},
			&request.Call{Name: s.key.Name}, &request.Call{Name: s.key.Name, Kind: messages.Kind_KIND_FAIR},
		}
	}
	for i, m := range of(stale) {
		if next.IsFor(m) || !next.IsFor(of(next)[i]) {
			t.Errorf("a %T is taken for that of another lock", m)
		}
		if i < len(of(stale))-2 {
			stale.post(m)
		}
	}
	if out := r.call(t, held.About(request.OpRelease, granted.HoldID)); out.Kind != machine.Freed {
		t.Errorf("the release is answered %+v", out)
	}
}

// The actor of one lock is restarted with that, though others had the PID before.
func TestReusedActor_SurvivesItsCrash(t *testing.T) {
	o, name := startObserved(t, plain), redistest.Name(t)
	o.use(t, name)
	stale := o.leave(t, name)
	held := &request.Call{Op: request.OpAcquire, Name: name + "next"}
	granted := o.call(t, held)
	s := o.locks.Get(kinds.KeyOf(held))
	if s.pid != stale.pid {
		t.Fatal("the next lock has a PID of its own")
	}
	directives := make(chan actor.Directive, 1)
	o.actor.EventStream.Subscribe(func(e any) {
		if event, ok := e.(*actor.SupervisorEvent); ok {
			directives <- event.Directive
		}
	})
	o.crashOnce(func(m any) bool { _, wakes := m.(wakeUp); return wakes })
	s.post(wakeUp{s})
	if got := <-directives; got != actor.RestartDirective {
		t.Errorf("the supervisor decides to %v", got)
	}
	if out := o.call(t, held.About(request.OpRelease, granted.HoldID)); out.Kind != machine.Freed {
		t.Errorf("the release is answered %+v", out)
	}
}

// Many goroutines that begin to use the same new names at once have one lock actor of each, and each other excluded.
func TestFreeShells_GoToOneActorOfAName(t *testing.T) {
	r, name := start(t, time.Hour), redistest.Name(t)
	for i := range 8 {
		r.use(t, fmt.Sprint(name, "old", i))
	}
	for i := range 8 {
		r.leave(t, fmt.Sprint(name, "old", i))
	}
	var all sync.WaitGroup
	var inside [64]int
	for range 8 {
		all.Go(func() {
			for i := range inside {
				acquire := &request.Call{Op: request.OpAcquire, Name: fmt.Sprint(name, i)}
				granted := r.call(t, acquire)
				if granted.Kind != machine.Granted {
					t.Errorf("%+v", granted)
					return
				}
				inside[i]++ // the race detector sees two at once
				if freed := r.call(t, acquire.About(request.OpRelease, granted.HoldID)); freed.Kind != machine.Freed {
					t.Errorf("%+v", freed)
				}
			}
		})
	}
	all.Wait()
	for i, n := range inside {
		if n != 8 {
			t.Errorf("%d of 8 turns with name %d", n, i)
		}
	}
}

// A goroutine that has taken a free shell when the system closes gets no lock actor: its request would be carried out
// after all others have been refused, and Close would wait for it.
func TestFreeShell_GetsNoLockActorAfterClose(t *testing.T) {
	r, name := start(t, time.Hour), redistest.Name(t)
	r.use(t, name)
	r.leave(t, name)
	free := r.shells.Take()
	go r.Close(nil)
	redistest.Eventually(t, "the guardian to take no more requests", func() bool {
		return r.call(t, &request.Call{Op: request.OpInspect, Name: name}).Reason == machine.Closed
	})
	call := &request.Call{Op: request.OpForceRelease, Name: name}
	if s := r.claim(free, kinds.KeyOf(call), call); s != nil {
		t.Error("the request gets a lock actor")
		s.post(call)
	}
	<-r.Ended()
}
