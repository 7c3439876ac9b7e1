package actors

import (
	"context"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Lend implements backend.Receiver: a call runs on the goroutine of a caller that still waits
// for its answer, of the one whose request this is about, or of the one who waits for its
// outcome. It reports whether there is one.
func (s *lockState) Lend(kind lock.CommandKind, call redisclient.Call) bool {
	lender, waiting := s.lender, false
	if lender == nil && (kind == lock.Acquire || kind == lock.SyncQueue) {
		lender, waiting = s.lock.Next().(*request.Call)
	}
	if lender == nil || !lender.Lends || !lender.MayRun(s.lock.LeaseUntil()-s.now) || !s.rt.borrow() {
		return false
	}
	if !lender.Future.Lend(&request.Loan{Lender: s.rt, Call: call}, waiting) {
		s.rt.lenders.Add(-1)
		return false
	}
	s.lender = nil
	return true
}

func (r *Runtime) Run(within context.Context, call *redisclient.Call) {
	r.redis.RunHere(within, call)
	r.lenders.Add(-1)
}

func (r *Runtime) HandBack(call redisclient.Call) {
	r.lenders.Add(-1)
	r.redis.Run(call)
}

// Replied implements backend.Receiver. It brings a reply to the lock actor, or what is left
// of it.
func (s *lockState) Replied(seq uint64, r backend.Reply) {
	s.post(&replied{state: s, seq: seq, result: r.Result, busy: r.Busy})
}

// tooLate handles a reply that comes when the actor has stopped: its state does not change
// any more. What a command took after the last release is released as well.
func (m *replied) tooLate() {
	if m.state.leaving != nil {
		m.state.variant.late(m)
	}
}

// replied brings the outcome of a command back to its lock actor.
type replied struct {
	state  *lockState
	seq    uint64
	result lock.Result
	busy   []backend.Channel
	// own is the outcome as only the variant knows it. Then result says only whether anything was taken.
	own any
}
