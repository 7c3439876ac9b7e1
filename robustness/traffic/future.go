package traffic

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// await acquires a lock by a future, which receives no later notifications: the hold has a
// fixed end. Some futures end before the answer comes.
func (w *worker) await(what messageLock) {
	m := &messages.Acquire{Lock: what.lock, Wait: durationpb.New(messageWait)}
	end := durationpb.New(w.c.plan.Watchdog * 7 / 10)
	if w.random.IntN(2) == 0 {
		m.Lease = end
	} else {
		m.MaxHold = end
	}
	limit := timeout
	if w.random.Float64() < w.style.GiveUpShare {
		limit = w.style.GiveUpAfter.Pick(w.random)
	}
	root, guardian := w.c.actors.Root, w.c.system.Guardian()
	b := w.requestByMessage(what, min(messageWait, limit))
	answer, err := root.RequestFuture(guardian, m, limit).Result()
	if err != nil {
		b.note(history.Event{Stage: history.Refused, Err: "future ended"})
		return
	}
	switch m := answer.(type) {
	case *messages.NotAcquired:
		b.note(history.Event{Stage: history.Refused, Err: named(m.Reason)})
		return
	case *messages.Acquired:
		b.granted(m)
	}
	if w.random.IntN(8) == 0 {
		b.extend(what.lock)
	}
	w.pause(w.style.Hold.Pick(w.random))
	b.trusted()
	b.note(history.Event{Stage: history.Releasing})
	for {
		answer, err = root.RequestFuture(guardian, &messages.Release{Lock: what.lock, HoldId: b.grant.HoldId}, timeout).Result()
		if err != nil || b.released(answer) {
			return // the judge detects a missing answer
		}
	}
}
