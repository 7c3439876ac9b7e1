package kinds

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
)

// recorder is a backend that keeps the commands to itself.
type recorder struct {
	backend.Backend
	last lock.Command
}

func (r *recorder) Run(c lock.Command, _ time.Time) { r.last = c }

// listener is an actor that receives transfers or does not.
type listener struct {
	Actor
	receives bool
}

func (l listener) ReceivesTransfers(uint64) bool { return l.receives }

// A command that adds an entry to the wait queue says whether its process receives transfers: a waiter that does not
// must not be transferred the lock.
func TestEntries_SayWhetherTransfersAreHeard(t *testing.T) {
	for _, receives := range []bool{false, true} {
		for _, c := range []struct {
			name string
			kind lock.CommandKind
			term uint64
			want bool
		}{
			{"acquire", lock.Acquire, 0, false}, {"acquire with an entry", lock.Acquire, 1, receives},
			{"yield", lock.Yield, 0, false}, {"yield with an entry", lock.Yield, 1, receives},
		} {
			r := &recorder{}
			observer := observe.New(observe.Config{}).Lock("orders")
			a := &lockAdapter{Backend: r, actor: listener{receives: receives}, observer: &observer}
			a.Send(&lock.Command{Kind: c.kind, Term: 1, Entry: lock.Entry{Term: c.term}}, 0)
			if r.last.Entry.Listens != c.want {
				t.Errorf("%s, while the process receives transfers: %v: the command says %v", c.name, receives, r.last.Entry.Listens)
			}
		}
	}
}
