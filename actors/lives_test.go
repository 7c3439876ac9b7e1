package actors

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// proto.actor's list of the guardian's children keeps the PIDs of actors that have gone, in the part of its array that
// it does not use. They must not keep anything alive.
func TestRetirement_LocksAreCollected(t *testing.T) {
	r := start(t, time.Second) // longer than from its last use to the look at it
	const locks = 300
	var collected atomic.Int64
	for i := range locks {
		name := fmt.Sprint("lock ", i)
		r.use(t, name)
		a := r.locks.Get(kinds.Key{Name: name})
		runtime.AddCleanup(a, func(int) { collected.Add(1) }, 0)
	}
	redistest.Eventually(t, "the lock actors to be collected", func() bool {
		runtime.GC()
		return collected.Load() == locks
	})
	r.use(t, "lock 0") // and a new one takes the place of the old one
}

// Names that are used once must not keep an actor each for as long as Config.Idle: a million of them took gigabytes.
func TestIdleActors_LeaveEarlyWhenThereAreMany(t *testing.T) {
	r, name := start(t, time.Hour), redistest.Name(t)
	held := &request.Call{Op: request.OpAcquire, Name: name + "held"}
	granted := r.take(t, held)
	of := r.locks.Get(kinds.KeyOf(held))
	var wg sync.WaitGroup
	const users = 16
	for user := range users {
		wg.Go(func() {
			for i := range (maxActors + shell.RingSize) / users * 5 / 4 {
				r.use(t, fmt.Sprint(name, user, " ", i))
			}
		})
	}
	wg.Wait()
	redistest.Eventually(t, "the idle ones to leave", func() bool {
		actors := 0
		for range r.locks.All {
			actors++
		}
		return actors <= maxActors+users+1+shell.RingSize
	})
	if r.locks.Get(kinds.KeyOf(held)) != of {
		t.Error("the actor of a lock that is held has left")
	}
	r.giveBack(t, held, granted)
}

// A request may name an owner of a hold that is over by the time it arrives. If the lock
// actor has left meanwhile, that number must fit no owner in its successor's life.
func TestReentry_NotByAnOwnerOfAnEarlierLockActor(t *testing.T) {
	r, name := start(t, 10*time.Millisecond), redistest.Name(t)
	first := r.use(t, name)
	redistest.Eventually(t, "the lock actor to leave", func() bool { return r.locks.Get(kinds.Key{Name: name}) == nil })
	r.call(t, &request.Call{Op: request.OpAcquire, Name: name})
	late := r.call(t, &request.Call{Op: request.OpAcquire, Name: name, Owner: first.Owner, Try: true})
	if late.Kind != machine.NotGranted || late.Reason != machine.Held {
		t.Fatalf("it is answered %+v", late)
	}
}

// wiretap copies the replies that a lockActor gets.
type wiretap struct {
	*lockActor
	replies chan<- backend.Reply
}

func (w wiretap) Replied(seq uint64, r backend.Reply) {
	w.replies <- r
	w.lockActor.Replied(&kinds.Reply{To: w.lockActor, Seq: seq, Lock: r})
}

func (wiretap) Lend(lock.CommandKind, redisclient.Call) bool { return false }

// An acquire that is under way when its lock actor is given up may be carried out behind
// the last release: its reply causes the release of what it took.
func TestAcquire_LaterThanTheLastReleaseIsGivenBack(t *testing.T) {
	for what, giveUp := range map[string]func(r *Runtime, a *lockActor){
		"given up": func(r *Runtime, a *lockActor) { r.Deliver(a.pid, abandon{}) },
		"stopped":  func(r *Runtime, a *lockActor) { _ = r.root.StopFuture(a.pid).Wait() },
	} {
		t.Run(what, func(t *testing.T) {
			r, server, name := start(t, time.Minute), redistest.Shared(t), redistest.Name(t)
			call := &request.Call{Op: request.OpAcquire, Name: name}
			r.take(t, call)
			a := r.locks.Get(kinds.KeyOf(call))
			giveUp(r, a)
			redistest.Eventually(t, "the last release", func() bool { return len(server.Keys(t, name)) == 0 })
			late := lock.Command{Kind: lock.Acquire, Term: 1, Count: 1, Lease: time.Minute}
			replied := make(chan backend.Reply, 1)
			backend.NewSingle(r.server, forms.Plain, name, &protocol.Options{Client: r.id}, wiretap{a, replied}).
				Run(late, time.Now().Add(redistest.Limit))
			if reply := <-replied; reply.Outcome != lock.Done {
				t.Fatalf("the late acquire has taken nothing: %+v", reply)
			}
			redistest.Eventually(t, "what the late acquire took to be released", func() bool { return len(server.Keys(t, name)) == 0 })
		})
	}
}

// retiringAdapter is notified before its actor leaves.
type retiringAdapter struct {
	kinds.Adapter
	retires func()
}

func (a retiringAdapter) Retires(machine.Machine, bool) { a.retires() }

// An adapter may have to give its successor another client id for commands, so it is notified before there can be one.
func TestRetires_ComesBeforeTheNextActor(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, r *Runtime, a *lockActor){
		"given up":     func(_ *testing.T, r *Runtime, a *lockActor) { r.Deliver(a.pid, abandon{}) },
		"leaves early": func(_ *testing.T, r *Runtime, a *lockActor) { r.crowded.Store(true); a.post(leaveIfIdle{a}) },
		"for another kind": func(t *testing.T, r *Runtime, a *lockActor) {
			r.call(t, &request.Call{Op: request.OpAcquire, Kind: messages.Kind_KIND_FAIR, Name: a.key.Name, Try: true})
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, name, inTime := start(t, time.Minute), redistest.Name(t), make(chan bool, 1)
			r.adapt(func(a *lockActor) kinds.Adapter {
				return retiringAdapter{a.adapter, func() {
					select {
					case inTime <- r.locks.Get(a.key) == a && !a.gate.Closed():
					default:
					}
				}}
			})
			r.use(t, name)
			a := r.locks.Get(kinds.Key{Name: name})
			leave(t, r, a)
			select {
			case is := <-inTime:
				if !is {
					t.Error("another actor could have been started for the name")
				}
			case <-time.After(redistest.Limit):
				t.Error("the adapter is not notified")
			}
		})
	}
}

// lateAdapter counts the replies that come after its actor was given up.
type lateAdapter struct {
	kinds.Adapter
	late int
}

func (a *lateAdapter) Late(*kinds.Reply) (again bool) { a.late++; return false }

// A reply that comes when the actor has stopped is settled, also a reply that a crash has put back.
func TestStoppedActor_SettlesReplies(t *testing.T) {
	adapter := &lateAdapter{}
	reply := &kinds.Reply{To: &lockActor{adapter: adapter, ending: &ending{}}}
	r := &Runtime{}
	r.settleLate(reply, nil)
	r.settleLate(&again{reply}, nil)
	r.settleLate(&kinds.Reply{To: &lockActor{adapter: adapter}}, nil) // it was idle: nothing of it is in Redis
	if adapter.late != 2 {
		t.Errorf("%d of 2 are settled", adapter.late)
	}
}

// recipient is a requester in whose process a panic is.
type recipient struct{ request.Requester }

func (recipient) Lost(request.Sender, *request.Call, *machine.Answer) { panic("the recipient") }

// A recipient that panics keeps nothing else of the lock's from being done.
func TestRecipient_ThatPanicsHoldsUpNothingElse(t *testing.T) {
	var log bytes.Buffer
	h := host.New(nil, slog.New(slog.NewTextHandler(&log, nil)))
	a := &lockActor{rt: &Runtime{host: h}, observer: new(observe.Observer).Lock("orders")}
	a.rt.notes.Changed = func() {}
	call := &request.Call{By: recipient{}, Note: "of the hold"}
	a.rt.notes.Add(call, call, 1)
	a.perform(&machine.Effect{Kind: machine.NotifyLost, Ref: call})
	var record records.Record
	if a.rt.notes.AddTo(&record); len(record.Notes) > 0 {
		t.Errorf("the lost hold still has a note: %q", record.Notes)
	}
	h.Flush()
	if got := log.String(); !strings.Contains(got, `lock=orders panic="the recipient"`) {
		t.Errorf("logged %q", got)
	}
}
