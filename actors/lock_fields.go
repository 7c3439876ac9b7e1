package actors

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/lockkeeper-go/lockkeeper/internal/alarm"
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/owners"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockActor is the supervised actor of one lock, semaphore or latch. It owns the key in Redis. It turns requests,
// timers and the replies of Redis into events of a machine, for example a lock.Lock, which decides, and carries out the
// effects. lock_actor.go has the messages that it handles, effects.go how it carries out what the machine decides.
//
// A crash loses nothing: the actor is restarted with the same state, which an event changes only once it is complete.
// The actor alone touches the state, while it handles a message or after that has crashed. What is shared with others is
// marked; what never changes may be read by all.
type lockActor struct {
	rt  *Runtime
	key kinds.Key
	// shell has the mailbox; pid and process are those of the shell.
	shell   *shell.Shell
	pid     *actor.PID
	process actor.Process

	// format is that of the lock in Redis. Requests for another format of the
	// same key are refused while this one is in use.
	format messages.Kind
	// client is the client part of the owner field.
	client string
	// kind has what differs by kind of lock.
	kind kinds.Kind
	// members are the locks that it is made of; none if it is one lock on one key.
	members    []request.Member
	subscribed []backend.Channel

	// gate is shared with all senders to the actor; seen is the actor's side of it.
	gate delivery.Gate
	seen uint64

	alarm alarm.Alarm
	// wakeAt is the time of the alarm, 0 if it is not set.
	wakeAt machine.Instant
	// idleSince is the time at which the actor became idle, 0 while it is not.
	idleSince machine.Instant
	inLine    atomic.Bool // see makeRoom
	owners    *owners.Set // nil until an actor makes a request

	// until is the end of the validity of the hold, shared with the holder. A Hold may be kept for
	// longer than its lock actor lives, so it is no part of this struct.
	until *atomic.Int64

	// machine decides, and is replaced by every event; now is the time of the last event.
	machine machine.Machine
	now     machine.Instant
	// inspections are the requests that await the state of the lock in Redis.
	inspections map[*request.Call]struct{}
	shown       records.Shown
	// observer measures, traces and logs what happens to the lock.
	observer observe.Lock

	// helper is the Call being handled, if its goroutine may be used for one command.
	helper *request.Call
	// ctx is the context of the message being handled, nil between messages.
	ctx actor.Context
	// counted is the message being handled, once it is counted as seen, and accepted once its handling is certain. After a
	// crash it is neither counted again nor refused.
	counted, accepted any
	crashes           []machine.Instant
	// closing: the System closes, and the actor leaves as soon as it has given everything back. inspects: it was started
	// for an inspection, and leaves when it has answered.
	closing, inspects bool
	// retirement is set once the lock is given up, or makes room for another kind.
	retirement *retirement
}

func newLockActor(rt *Runtime, h *shell.Shell, key kinds.Key, kind messages.Kind, members *request.Members) *lockActor {
	s := &lockActor{
		rt: rt, key: key, shell: h, pid: h.PID, process: h.Process, format: kinds.Of(kind).Format, until: new(atomic.Int64),
	}
	label := key.Name
	s.alarm = rt.clocks.Alarm(rt.spawned.Add(1), s)
	spec := kinds.Spec{Traits: kinds.Of(kind), Name: key.Name, Observer: &s.observer}
	switch key.Made {
	case kinds.Members:
		label, s.members = members.String(), members.Sorted
		spec.Members, spec.Tokens = partsOf(members.Sorted), members.Fenced
	case kinds.Servers:
		systems := *rt.red.Load()
		spec.Servers = serversOf(systems)
		for _, each := range systems {
			s.members = append(s.members, request.Member{System: each, Name: key.Name})
		}
	}
	s.kind, s.client = rt.kinds.New(spec, s)
	s.machine = s.kind.Fresh()
	s.observer = rt.observer.Lock(label)
	return s
}

// watcher watches the owners that are actors.
func (s *lockActor) watcher() owners.Watcher {
	return owners.Watcher{Post: &s.rt.post, Rules: &s.rt.rules, PID: s.pid, Numbers: &s.rt.owners}
}

// Begins implements delivery.CrashHandler. The next message may reuse the memory of the last one (see
// request.NewCountCall), so the pointers to that are cleared.
func (s *lockActor) Begins() { s.counted, s.accepted = nil, nil }

// began notes the message that is being handled, with its context.
func (s *lockActor) began(ctx actor.Context) (m any) {
	s.ctx, s.helper = ctx, nil
	m = unrepeated(ctx.Message())
	if _, is := m.(*request.Call); is {
		s.counted = ctx.Message()
		s.seen++
	}
	return m
}

// post sends the actor a message of ours. It does not look the actor up: with many leases to renew, that was a fifth of
// the work. If the actor has stopped, its mailbox settles the message (see package delivery).
func (s *lockActor) post(m any) {
	defer s.rt.host.Recover("a recipient panicked")
	s.process.SendUserMessage(s.pid, m)
}

// Replied implements kinds.Actor.
func (s *lockActor) Replied(r *kinds.Reply) { s.post(r) }

// Wake implements alarm.Sleeper.
func (s *lockActor) Wake() { s.post(wakeUp{s}) }

// idle reports whether the machine has nothing to do and no state to keep, and no inspection is pending.
func (s *lockActor) idle() bool { return s.machine.Idle() && len(s.inspections) == 0 }

// newID numbers a request. Numbers grow over the whole system, and their lower half is
// random: an id from an actor's earlier life fits nothing in a later one.
func (s *lockActor) newID() uint64 { return s.rt.requests.Add(1)<<20 | rand.Uint64N(1<<20) }
