package protocol

import (
	"strconv"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// fair is Redisson's fair lock: the plain lock with a queue of its waiters in Redis. Hold counts and TTL are
// as in the plain lock.
type fair struct {
	plain
	queue, timeouts string
}

func init() {
	formats[forms.Fair] = func(of *forms.Form, name string) format {
		return &fair{queue: of.Queue(name), timeouts: of.Timeouts(name)}
	}
}

func (f *fair) call(l *Lock, c lock.Command) redisclient.Call {
	switch {
	case c.Kind == lock.SyncQueue:
		released := ""
		if c.Term != 0 {
			released = l.Owner(c.Term)
		}
		how := digit(c.Take)
		if !c.Take && c.Behind != 0 {
			how = l.Owner(c.Behind)
		}
		return f.syncQueue(l, released, how, c.Top, c.Entries)
	case c.Kind == lock.Acquire && c.Count == 1:
		// A member of a MultiLock, which does not queue.
		return f.syncQueue(l, "", digit(true), 0, []lock.QueueEntry{{Term: c.Term, Lease: c.Lease, Try: true}})
	case c.Kind == lock.Release && c.Count == 0:
		call := f.syncQueue(l, l.Owner(c.Term), digit(false), 0, nil)
		call.Format = queueReleased
		return call
	case c.Kind == lock.ForceRelease:
		args := append([]string{f.queue, f.timeouts, l.Channel}, c.Owners...)
		return redisclient.Call{Script: scripts.FairForceRelease, Format: forced, Keys: l.hash(), Args: args}
	}
	return f.plain.call(l, c)
}

// syncQueue makes the call of the sync_queue script. how says whether it may take the lock, and which waiters join.
func (f *fair) syncQueue(l *Lock, released, how string, top uint64, entries []lock.QueueEntry) redisclient.Call {
	args := make([]string, 0, 8+3*len(entries))
	args = append(args, l.options.Client, released, how, strconv.FormatUint(top, 10), ms(l.options.WaiterTimeout),
		f.queue, f.timeouts, l.Channel)
	for _, e := range entries {
		args = append(args, l.Owner(e.Term), ms(e.Lease), digit(!e.Try))
	}
	return redisclient.Call{Script: scripts.SyncQueue, Format: queueSynced, Keys: l.hash(), Args: args}
}

// inspect returns the length of the queue instead of the number of subscribers.
func (f *fair) inspect(l *Lock) redisclient.Call {
	return redisclient.Call{Script: scripts.FairInspect, Format: inspected, Keys: l.hash(), Args: []string{f.queue}}
}

func (f *fair) member(*Lock) (string, [2]string) { return "", [2]string{f.queue, f.timeouts} }
