package actors

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A message that comes for a lock when another one has its PID does not touch that: a request goes back to the
// guardian, and is carried out for its own lock.
func TestStaleMessage_ReachesNoOtherLock(t *testing.T) {
	r, name := start(t, time.Hour), redistest.Name(t)
	r.use(t, name)
	stale := r.leave(t, name)
	held := &request.Call{Op: request.OpAcquire, Name: name + "next"}
	granted := r.take(t, held)
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
	of := func(a *lockActor) []any {
		return []any{
			&kinds.Reply{To: a}, wakeUp{a}, unlocked{to: a}, listening{to: a}, &transferred{to: a}, suspicion{a}, leaveIfIdle{a}, &again{suspicion{a}},
			&request.Call{Name: a.key.Name}, &request.Call{Name: a.key.Name, Kind: messages.Kind_KIND_FAIR},
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
	r.giveBack(t, held, granted)
}

// The actor of one lock is restarted with that, though others had the PID before.
func TestReusedActor_SurvivesItsCrash(t *testing.T) {
	o, name := startObserved(t, plain), redistest.Name(t)
	o.use(t, name)
	stale := o.leave(t, name)
	held := &request.Call{Op: request.OpAcquire, Name: name + "next"}
	granted := o.take(t, held)
	a := o.locks.Get(kinds.KeyOf(held))
	if a.pid != stale.pid {
		t.Fatal("the next lock has a PID of its own")
	}
	directives := make(chan actor.Directive, 1)
	o.system.EventStream.Subscribe(func(e any) {
		if event, ok := e.(*actor.SupervisorEvent); ok {
			directives <- event.Directive
		}
	})
	o.crashOnce(func(m any) bool { _, wakes := m.(wakeUp); return wakes })
	a.post(wakeUp{a})
	if got := <-directives; got != actor.RestartDirective {
		t.Errorf("the supervisor decides to %v", got)
	}
	o.giveBack(t, held, granted)
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
				granted := r.take(t, acquire)
				inside[i]++ // the race detector sees two at once
				r.giveBack(t, acquire, granted)
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
	if a := r.claim(free, kinds.KeyOf(call), call); a != nil {
		t.Error("the request gets a lock actor")
		a.post(call)
	}
	<-r.Ended()
}

// eachForm runs a test for a lock on one key, and for a MultiLock.
func eachForm(t *testing.T, test func(t *testing.T, r *Runtime, about func(op request.Op) *request.Call)) {
	for what, several := range map[string]bool{"one lock": false, "several locks": true} {
		t.Run(what, func(t *testing.T) {
			r, name := start(t, time.Hour), redistest.Name(t)
			var members *request.Members
			if several {
				var err error
				if members, err = request.NewMembers([]request.Member{{System: r, Name: name}, {System: r, Name: name + "2"}}); err != nil {
					t.Fatal(err)
				}
			}
			test(t, r, func(op request.Op) *request.Call { return &request.Call{Op: op, Name: name, Members: members} })
		})
	}
}

// lists reports whether the lock actor of a key, or of a MultiLock, is listed.
func (r *Runtime) lists(key kinds.Key) (listed bool) {
	for range r.composites.Range {
		listed = true
	}
	return listed || r.locks.Get(key) != nil
}

// The host may stop a free shell when a goroutine has taken it for the lock of its request. That is refused, and the
// next request of the name gets a lock actor.
func TestFreeShell_IsStoppedBeforeItsLockActorEnters(t *testing.T) {
	eachForm(t, func(t *testing.T, r *Runtime, about func(op request.Op) *request.Call) {
		r.use(t, "before")
		r.leave(t, "before")
		free := r.shells.Take()
		if err := r.root.StopFuture(free.PID).Wait(); err != nil {
			t.Fatal(err)
		}
		stray := about(request.OpList)
		free.Process.SendUserMessage(free.PID, stray)
		stray.Future.Await(nil) // its mailbox knows that it has stopped
		call := about(request.OpForceRelease)
		a := r.claim(free, kinds.KeyOf(call), call)
		redistest.Eventually(t, "the lock actor that has not entered to be listed no more", func() bool {
			return a.gate.Closed() && !r.lists(a.key)
		})
		a.post(call)
		if _, out := call.Future.Await(nil); out.Reason != machine.Closed {
			t.Errorf("the request is answered %+v", out)
		}
		if out := r.call(t, about(request.OpAcquire)); out.Kind != machine.Granted {
			t.Errorf("the next request is answered %+v", out)
		}
	})
}

// goneAdapter is notified when its actor has left.
type goneAdapter struct {
	kinds.Adapter
	gone *atomic.Int64
}

func (a goneAdapter) Gone() {
	a.gone.Add(1)
	a.Adapter.Gone()
}

// However a lock actor leaves, nothing refers to it then, and its adapter is notified once.
func TestGone_IsCalledOnceHoweverTheActorLeaves(t *testing.T) {
	for what, leave := range map[string]func(r *Runtime, a *lockActor){
		"its shell": func(r *Runtime, a *lockActor) { r.crowded.Store(true); a.post(leaveIfIdle{a}) },
		"and stops": func(_ *Runtime, a *lockActor) { a.post(leaveIfIdle{a}) },
		"given up":  func(r *Runtime, a *lockActor) { r.Deliver(a.pid, abandon{}) },
		"stopped":   func(r *Runtime, a *lockActor) { r.root.Stop(a.pid) },
	} {
		t.Run(what, func(t *testing.T) {
			eachForm(t, func(t *testing.T, r *Runtime, about func(op request.Op) *request.Call) {
				gone := new(atomic.Int64)
				r.adapt(func(a *lockActor) kinds.Adapter { return goneAdapter{a.adapter, gone} })
				acquire := about(request.OpAcquire)
				granted := r.take(t, acquire)
				a := r.locks.Get(kinds.KeyOf(acquire))
				if !r.lists(kinds.Key{}) && acquire.Members != nil {
					t.Error("its members do not know of it")
				}
				r.giveBack(t, acquire, granted)
				leave(r, a)
				redistest.Eventually(t, "the lock actor to leave", func() bool { return !r.lists(a.key) && gone.Load() > 0 })
				if n := gone.Load(); n > 1 {
					t.Errorf("the adapter is notified %d times", n)
				}
			})
		})
	}
}

// When there are few lock actors again, a free shell ends with each that retires. While there are many, none does.
func TestRetired_EndsAFreeShell(t *testing.T) {
	for what, crowded := range map[string]bool{"few": false, "many": true} {
		t.Run(what, func(t *testing.T) {
			r, name := start(t, time.Hour), redistest.Name(t)
			r.use(t, name)
			r.use(t, name+"2")
			free, retires := r.leave(t, name).shell, r.locks.Get(kinds.Key{Name: name + "2"})
			r.crowded.Store(crowded)
			r.Deliver(retires.pid, abandon{})
			there := func(s *shell.Shell) bool {
				_, is := r.system.ProcessRegistry.GetLocal(s.PID.Id)
				return is
			}
			redistest.Eventually(t, "the shell of the one that retires to end", func() bool { return !there(retires.shell) })
			if crowded {
				if r.shells.Take() != free {
					t.Error("the free shell is not in the pool")
				}
				r.shells.Put(free)
				return
			}
			redistest.Eventually(t, "the free shell to end", func() bool { return !there(free) })
			if r.shells.Take() != nil {
				t.Error("a shell that has ended is in the pool")
			}
		})
	}
}

// A lock actor that waits for the rest of its requests, to leave for another kind, refuses the requests that it has if
// it is stopped meanwhile. The next request of the name gets a lock actor.
func TestChangeOfKind_EndsWithTheActor(t *testing.T) {
	r, name, handled, once := start(t, time.Hour), redistest.Name(t), make(chan struct{}), new(sync.Once)
	r.aroundEach(func(m any, handle func()) {
		call, ok := m.(*request.Call)
		isFair := ok && call.Kind == messages.Kind_KIND_FAIR // afterwards another request may use its memory
		if handle(); isFair {
			once.Do(func() { close(handled) })
		}
	})
	r.use(t, name)
	a := r.locks.Get(kinds.Key{Name: name})
	a.gate.Enter() // a request that does not come
	call := &request.Call{Op: request.OpAcquire, Kind: messages.Kind_KIND_FAIR, Name: name, Try: true}
	r.submit(call)
	<-handled
	r.root.Stop(a.pid)
	if _, out := call.Future.Await(nil); out.Reason != machine.Closed {
		t.Errorf("the request is answered %+v", out)
	}
	redistest.Eventually(t, "the next request to be granted", func() bool {
		return r.call(t, &request.Call{Op: request.OpAcquire, Kind: messages.Kind_KIND_FAIR, Name: name, Try: true}).Kind == machine.Granted
	})
}
