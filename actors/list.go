package actors

import (
	"context"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// listBatch is how many lock actors are asked before their answers are read.
const listBatch = 256

// Locks returns the state of every lock that the system holds or waits for, and of every semaphore and
// latch that it waits for, as far as it is known without Redis. It asks each lock actor in turn. complete
// is false if ctx ends first.
func (r *Runtime) Locks(ctx context.Context) (all []*messages.Status, complete bool) {
	var asked []*request.Call
	read := func() bool {
		for _, call := range asked {
			var out request.Outcome
			if _, answered := call.Future.Await(ctx.Done(), &out); !answered {
				return false
			}
			if out.Status != nil {
				all = append(all, out.Status)
			}
		}
		asked = asked[:0]
		return true
	}
	for i := range r.table.states {
		complete := true
		r.table.states[i].Range(func(_, value any) bool {
			s := value.(*lockState)
			if !s.gate.enter() { // it is leaving, and was idle
				return true
			}
			call := &request.Call{Op: request.OpList, Kind: s.format, Name: s.key.name}
			asked = append(asked, call)
			s.process.SendUserMessage(s.pid, call)
			complete = len(asked) < listBatch || read()
			return complete
		})
		if !complete {
			return nil, false
		}
	}
	return all, read()
}

// listed is the state of the lock without Redis; nil if it is neither held here nor waited for.
func (s *lockState) listed() *messages.Status {
	here := s.lock.Snapshot()
	if !here.HeldHere && here.Waiters == 0 {
		return nil
	}
	holders, _ := s.lock.Outstanding()
	ref := s.lock.Next()
	if len(holders) > 0 {
		ref = holders[0].Ref
	}
	status := &messages.Status{
		Lock: asRequested(ref, s.label), Locked: here.HeldHere, HeldHere: here.HeldHere, HoldCount: int64(here.Count),
		Waiters: int64(here.Waiters), Holders: int64(len(holders)),
	}
	if status.Mode = status.Lock.Mode; here.HeldHere {
		status.Ttl = request.Duration(max(here.Until-s.rt.Now(), 0))
	}
	if len(here.Tokens) > 0 && !s.kind.Parts {
		status.Token = here.Tokens[0]
	}
	s.addAges(status, holders)
	return status
}

// asRequested is the lock as a request names it.
func asRequested(ref any, label string) *messages.Lock {
	named := &messages.Lock{Name: label}
	if call, is := ref.(*request.Call); is {
		named.Kind, named.Mode = call.LockKind(), call.Mode
	}
	return named
}

// addAges adds for how long the lock is held here, and for how long the first waiter waits.
func (s *lockState) addAges(status *messages.Status, holders []machine.Holder) {
	age := func(ref any) machine.Instant { return max(s.rt.Now()-ref.(*request.Call).From, 0) }
	if len(holders) > 0 {
		status.HeldFor = request.Duration(age(holders[0].Ref))
	}
	if waiter := s.lock.Next(); waiter != nil {
		status.WaitingFor = request.Duration(age(waiter))
	}
}
