package traffic

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// messageLock is a lock that is acquired by message, with its parts for the judge.
type messageLock struct {
	lock  *messages.Lock
	parts []history.Part
}

// messageWait is how long a request by message waits.
const messageWait = 2 * time.Second

// byMessage is a plain or a fenced lock.
func byMessage(name string, kind messages.Kind) messageLock {
	model := "plain"
	if kind == messages.Kind_KIND_FENCED {
		model = "fenced"
	}
	return messageLock{&messages.Lock{Name: name, Kind: kind}, []history.Part{{Lock: name, Kind: model}}}
}

// messageRequest is a request by message, and its hold.
type messageRequest struct {
	w         *worker
	id        int
	asked     time.Duration // on the clock of the System
	grant     *messages.Acquired
	validity  time.Duration // from asked on
	grantedAt time.Duration // on the clock of the histories
}

// requestByMessage records a request by message, which waits at most for wait.
func (w *worker) requestByMessage(what messageLock, wait time.Duration) *messageRequest {
	return &messageRequest{w: w, asked: w.c.machine.Now(), id: w.asking(what.parts, 0, false, wait)}
}

func (b *messageRequest) note(e history.Event) {
	e.ID, e.At = b.id, history.Now()
	b.w.r.out.Add(e)
}

// granted records the answer.
func (b *messageRequest) granted(m *messages.Acquired) {
	b.grant, b.validity, b.grantedAt = m, m.Validity.AsDuration(), history.Now()
	b.note(history.Event{Stage: history.Granted, Count: int(m.HoldCount), Tokens: []int64{m.Token}})
}

// trusted records that the hold was valid until now, if the validity in the last answer, counted
// from its request, is not over.
func (b *messageRequest) trusted() {
	now := history.Now()
	if b.w.c.machine.Now()-b.asked < b.validity {
		b.w.r.out.Add(history.Event{Stage: history.Valid, ID: b.id, Since: b.grantedAt, At: now})
	}
}

// extend gives the hold a fixed lease. If that fails, the end of the hold is unknown, and the hold is no longer
// trusted.
func (b *messageRequest) extend(lock *messages.Lock) {
	lease := Range{b.w.c.plan.Watchdog / 4, b.w.c.plan.Watchdog / 2}.Pick(b.w.random)
	asked, since := b.w.c.machine.Now(), history.Now()
	m := &messages.Extend{Lock: lock, HoldId: b.grant.HoldId, Lease: durationpb.New(lease)}
	answer, err := b.w.c.actors.Root.RequestFuture(b.w.c.system.Guardian(), m, timeout).Result()
	b.validity = 0
	if m, ok := answer.(*messages.Extended); ok {
		b.asked, b.validity = asked, m.Validity.AsDuration()
	} else if err == nil {
		err = lockkeeper.ErrorOf(answer)
	}
	b.w.extended(b.id, since, lease, err)
}

// lost records the notification of a loss.
func (b *messageRequest) lost(m *messages.LeaseLost) {
	b.note(history.Event{Stage: history.Notified, Err: named(m.Reason)})
}

// released records the answer to a release; it returns false if the release must be repeated.
func (b *messageRequest) released(answer any) bool {
	m, failed := answer.(*messages.NotReleased)
	if !failed {
		b.note(history.Event{Stage: history.Released})
		return true
	}
	if m.Reason == messages.Reason_REASON_CRASHED {
		return false
	}
	unknown := m.Reason != messages.Reason_REASON_LOST && m.Reason != messages.Reason_REASON_NOT_HELD
	b.note(history.Event{Stage: history.Released, Err: named(m.Reason), OutcomeUnknown: unknown})
	return true
}
