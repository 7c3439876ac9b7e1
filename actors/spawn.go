package actors

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/mailbox"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A lock gets its actor: guardian.pass takes a free shell or spawns a new shell, and claims it for a new lockActor;
// claimFree, on the goroutine of a request, claims a free shell. The guardian supervises the shell, and so the lock
// actor in it.

// claim gives a shell to a new lock actor for a key, and makes first, the first request, enter the actor's gate. It
// returns nil if the key has an actor by now, or a conflicting actor, or if the guardian takes no further requests.
//
// An actor of the same key that is still leaving was idle, or is given up; either way it does not interfere with the
// new actor. Nor does an actor that was started for an inspection: it is not in the table, so it claims no name, and it
// leaves when it has answered.
func (r *Runtime) claim(free *shell.Shell, key kinds.Key, first *request.Call) *lockActor {
	a := newLockActor(r, free, key, first.LockKind(), first.Members)
	a.inspects = first.Op == request.OpInspect
	a.gate.Enter() // the actor must not retire before the request has come
	if !free.Enter(a) || !a.inspects && !r.locks.Add(a, first) {
		free.PutBack()
		return nil
	}
	a.registerWithMembers()
	if a.gate.Closed() { // the actor was stopped or given up meanwhile, and the request will be refused
		a.unlist()
	}
	return a
}

// claimFree claims a free shell for the lock of a goroutine's request, which then need not pass through the guardian's
// mailbox. It returns nil if the guardian has to handle the request, such as an inspection, which claims no name, or
// the first request for anything but a lock with one key, which is rare.
func (r *Runtime) claimFree(key kinds.Key, call *request.Call) *lockActor {
	if key.Composition == request.OneKey && call.Op != request.OpInspect && r.rules.Check(call) == nil {
		if free := r.shells.Take(); free != nil {
			return r.claim(free, key, call)
		}
	}
	return nil
}

// ListedAs implements kinds.Listed.
func (a *lockActor) ListedAs() (kinds.Key, messages.Kind) { return a.key, a.storedAs }

// Leaving implements kinds.Listed.
func (a *lockActor) Leaving() bool { return a.gate.Closed() }

// SameKey reports whether locks of two kinds, if they have the same name, are one lock on one key in Redis.
func SameKey(a, b messages.Kind) bool { return kinds.Of(a).StoredAs == kinds.Of(b).StoredAs }

// inUseText says that the actor of a name cannot serve a request for a kind.
func inUseText(a *lockActor, wanted messages.Kind) string {
	return fmt.Sprintf("the name %q is in use in this system as %s, and cannot be %s at the same time; use another name",
		a.key.Name, kinds.Of(a.storedAs).Word, kinds.Of(wanted).Word)
}

func newLockActor(rt *Runtime, free *shell.Shell, key kinds.Key, kind messages.Kind, members *request.Members) *lockActor {
	a := &lockActor{
		rt: rt, key: key, shell: free, pid: free.PID, process: free.Process, storedAs: kinds.Of(kind).StoredAs, until: new(atomic.Int64),
	}
	label := key.Name
	a.alarm = rt.clocks.Alarm(rt.spawned.Add(1), a)
	spec := kinds.Spec{Kind: kinds.Of(kind), Name: key.Name, Observer: &a.observer}
	switch key.Composition {
	case request.SeveralLocks:
		label, a.members = members.String(), members.Sorted
		spec.Members, spec.Tokens = memberSpecsOf(members.Sorted), members.Fenced
	case request.SeveralServers:
		systems := *rt.red.Load()
		spec.Servers = serversOf(systems)
		for _, each := range systems {
			a.members = append(a.members, request.Member{System: each, Name: key.Name})
		}
	}
	a.adapter, a.client = rt.kinds.New(spec, a)
	a.machine = a.adapter.Fresh()
	a.observer = rt.observer.Lock(label)
	return a
}

// props returns new props for every actor, since spawn middleware of the host may change them.
func (r *Runtime) props(producer actor.Producer, handler delivery.CrashHandler) *actor.Props {
	options := []actor.PropsOption{r.post.WithMailbox(mailbox.New, handler), actor.WithDispatcher(&r.goroutines)}
	if len(r.injected) > 0 {
		options = append(options, actor.WithReceiverMiddleware(r.injected...))
	}
	return actor.PropsFromProducer(producer, options...)
}
