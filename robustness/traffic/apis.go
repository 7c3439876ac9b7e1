package traffic

import (
	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// The name that is locked through every API, and another member of its MultiLocks.
const (
	sharedName   = string(APIs)
	sharedMember = "apis-member"
)

// throughAnyAPI acquires one lock by a goroutine, an actor, a future or a MultiLock, plain or
// fenced: all of them exclude each other.
func (w *worker) throughAnyAPI() {
	s, kind, model := w.c.system, messages.Kind_KIND_PLAIN, "plain"
	lock := s.Lock(sharedName)
	if w.random.IntN(2) == 0 {
		lock, kind, model = s.FencedLock(sharedName), messages.Kind_KIND_FENCED, "fenced"
	}
	part := history.Part{Lock: sharedName, Kind: model}
	switch w.random.IntN(5) {
	case 0, 1:
		w.once(choice{lock: lock, parts: []history.Part{part}, counts: true})
	case 2:
		w.once(choice{lock: lockkeeper.MultiLock(lock, s.Lock(sharedMember)), parts: []history.Part{part, {Lock: sharedMember, Kind: "plain"}}})
	case 3:
		w.withChildActor(byMessage(sharedName, kind))
	default:
		w.await(byMessage(sharedName, kind))
	}
}
