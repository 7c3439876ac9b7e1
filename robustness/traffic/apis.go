package traffic

import (
	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// The one name that is locked through every face, and another member of its MultiLocks.
const (
	faced  = string(Faces)
	beside = "faces-beside"
)

// throughAFace takes one lock as a goroutine, an actor, a future or a member of a
// MultiLock, plain or fenced: all of them exclude each other.
func (w *worker) throughAFace() {
	s, kind, model := w.c.system, messages.Kind_KIND_REENTRANT, "plain"
	lock := s.Lock(faced)
	if w.random.IntN(2) == 0 {
		lock, kind, model = s.FencedLock(faced), messages.Kind_KIND_FENCED, "fenced"
	}
	part := history.Part{Lock: faced, Kind: model}
	switch w.random.IntN(5) {
	case 0, 1:
		w.once(choice{lock: lock, parts: []history.Part{part}, counts: true})
	case 2:
		w.once(choice{lock: lockkeeper.MultiLock(lock, s.Lock(beside)), parts: []history.Part{part, {Lock: beside, Kind: "plain"}}})
	case 3:
		w.employ(byMessage(faced, kind))
	default:
		w.await(byMessage(faced, kind))
	}
}
