package traffic

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// letter is a lock that is taken by message, and what the judge must know of it.
type letter struct {
	lock  *messages.Lock
	parts []history.Part
}

// letterWait is how long a request by message waits.
const letterWait = 2 * time.Second

// byMessage is a plain or a fenced lock.
func byMessage(name string, kind messages.Kind) letter {
	model := "plain"
	if kind == messages.Kind_KIND_FENCED {
		model = "fenced"
	}
	return letter{&messages.Lock{Name: name, Kind: kind}, []history.Part{{Lock: name, Kind: model}}}
}

// byLetter is a request that was made by message, and its hold.
type byLetter struct {
	w     *worker
	id    int
	asked time.Duration // on the clock of the System
	grant *messages.Acquired
	heard time.Duration // on that of the histories
}

// writeTo notes a request by message, which waits that long at most.
func (w *worker) writeTo(what letter, wait time.Duration) *byLetter {
	return &byLetter{w: w, asked: w.c.machine.Now(), id: w.asking(what.parts, 0, false, wait)}
}

func (b *byLetter) note(e history.Event) {
	e.ID, e.At = b.id, history.Now()
	b.w.r.out.Add(e)
}

// granted notes the answer.
func (b *byLetter) granted(m *messages.Acquired) {
	b.grant, b.heard = m, history.Now()
	b.note(history.Event{Stage: history.Granted, Count: int(m.HoldCount), Tokens: []int64{m.Token}})
}

// trusted notes for how long the hold was trusted, when that has ended without a loss:
// certainly for the time that the answer gave, counted from the request.
func (b *byLetter) trusted() {
	now := history.Now()
	if b.w.c.machine.Now()-b.asked < b.grant.Validity.AsDuration() {
		b.w.r.out.Add(history.Event{Stage: history.Valid, ID: b.id, Since: b.heard, At: now})
	}
}

// lost notes that the loss was told.
func (b *byLetter) lost(m *messages.LeaseLost) {
	b.note(history.Event{Stage: history.Told, Err: named(m.Reason)})
}

// released notes what came of a release; false if it is to be repeated.
func (b *byLetter) released(answer any) bool {
	m, failed := answer.(*messages.NotReleased)
	if !failed {
		b.note(history.Event{Stage: history.Released})
		return true
	}
	if m.Reason == messages.Reason_REASON_CRASHED {
		return false
	}
	doubtful := m.Reason != messages.Reason_REASON_LOST && m.Reason != messages.Reason_REASON_NOT_HELD
	b.note(history.Event{Stage: history.Released, Err: named(m.Reason), Doubtful: doubtful})
	return true
}
