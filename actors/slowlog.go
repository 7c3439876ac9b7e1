package actors

import (
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// waits returns the request whose wait is logged when it lasts long, and holds returns that whose hold is. Both
// return nil if there is none.
func (s *lockState) waits() *request.Call {
	if call, ok := s.lock.Next().(*request.Call); ok && s.rt.cfg.LongWait > 0 && !call.Leads && call.Count == nil {
		return call
	}
	return nil
}

func (s *lockState) holds() *request.Call {
	if holds, _, first := s.lock.Load(); holds > 0 && s.rt.cfg.LongHold > 0 && !first.(*request.Call).Leads {
		return first.(*request.Call)
	}
	return nil
}

// since is when a request was made, or granted; nil if there is none.
func since(call *request.Call) *machine.Instant {
	if call == nil {
		return nil
	}
	return &call.From
}

// remindAt is when something about the lock will have lasted long, if it goes on.
func (s *lockState) remindAt() (at machine.Instant, wanted bool) {
	return s.observer.RemindAt(since(s.waits()), since(s.holds()))
}

// remind logs what has lasted long.
func (s *lockState) remind() {
	now, waits, holds := s.rt.Now(), s.waits(), s.holds()
	waitIsLong, holdIsLong := s.observer.LongTimes(now, since(waits), since(holds))
	if waitIsLong && !s.asksWhoHolds() {
		s.inspect(tick{}, &request.Call{Op: request.OpInspect, By: longWait{s: s}})
	}
	if holdIsLong {
		var stack func() []uintptr
		if holds.Holder != nil {
			stack = holds.Holder.Stack
		}
		s.observer.LongHold(s.hold(holds, s.lock.Term(), now), stack)
	}
	if waitIsLong || holdIsLong {
		s.setAlarm()
	}
}

// asksWhoHolds reports whether an Inspect for such a line is under way. A second one would log the same.
func (s *lockState) asksWhoHolds() bool {
	for call := range s.inspections {
		if _, asks := call.By.(longWait); asks {
			return true
		}
	}
	return false
}

// longWait is the requester of an Inspect that asks who holds the lock for which requests wait, to log it.
type longWait struct {
	request.Goroutine
	s *lockState
}

// answered logs that it is not known who holds it.
func (w longWait) Answered(_ request.Sender, _ *request.Call, a machine.Answer) (taken bool) {
	if wait, waits := w.s.longWait(); waits {
		w.s.observer.LongWaitUnexplained(wait, a.Reason, a.Detail)
	}
	return true
}

func (w longWait) Inspected(_ request.Sender, _ *request.Call, status *messages.Status) {
	if wait, waits := w.s.longWait(); waits {
		w.s.observer.LongWait(wait, status)
	}
}

// longWait is the wait to log, unless the lock was granted meanwhile.
func (s *lockState) longWait() (wait observe.Wait, waits bool) {
	by := s.waits()
	if by == nil {
		return wait, false
	}
	return observe.Wait{Kind: by.LockKind(), For: s.rt.Now() - by.From, Waiters: s.lock.Snapshot().Waiters}, true
}
