package protocol

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// View is the state of a lock, or of an expirable semaphore, in Redis.
type View struct {
	Locked bool
	Mode   machine.Mode
	// TTL is negative if the key has none.
	TTL time.Duration
	// Holders is the number of holders; Holder is one of them, and Count its hold count.
	Holders int
	Holder  string
	Count   int
	// Owners are all holders, at most keyspace.MaxOwners.
	Owners []string
	// Subscribers is the number of clients subscribed to the channel; for a fair lock, the
	// length of its queue.
	Subscribers int
	// Only these are set for permits: how many are free, how many are taken, and how many there are.
	FreePermits, TakenPermits, AllPermits int64
}

// Inspect returns the call that reads the state of the lock; View reads its reply.
func (l *Lock) Inspect(deadline time.Time) redisclient.Call {
	call := l.format.inspect(l)
	call.Deadline = deadline
	return call
}

// View reads the reply to Inspect.
func (l *Lock) View(reply redisclient.Reply) View {
	ttl := reply.N[0]
	v := View{Locked: ttl != scripts.NoKey, TTL: -1, Subscribers: int(reply.N[1]), Holder: reply.S[0]}
	v.Count, _ = strconv.Atoi(reply.S[1])
	if ttl >= 0 {
		v.TTL = milliseconds(ttl)
	}
	switch {
	case !v.Locked:
	case reply.Format == inspectedHolders:
		v.Holders = int(reply.N[2])
		v.Owners = ownersOf(v.Holder)
		v.Holder, _, _ = strings.Cut(v.Holder, " ")
		if v.Holder, v.Locked = strings.CutSuffix(v.Holder, ":write"); !v.Locked {
			v.Mode, v.Locked = machine.Shared, true
		}
	default:
		v.Holders = 1
		v.Owners = ownersOf(v.Holder)
		v.Holder = strings.TrimSuffix(v.Holder, ":write") // it is a read/write lock
	}
	return v
}

// ownersOf returns the owners of fields that are separated by blanks, each once.
func ownersOf(fields string) (owners []string) {
	for field := range strings.FieldsSeq(fields) {
		if field = strings.Replace(field, ":write", "", 1); len(owners) < keyspace.MaxOwners {
			owners = append(owners, field)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}
