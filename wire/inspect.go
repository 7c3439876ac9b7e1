package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// View is what Redis says of a lock.
type View struct {
	Locked bool
	Mode   core.Mode
	// TTL is negative if there is no end.
	TTL time.Duration
	// Holders is how many hold it; Holder is one of them, and Count how often it does.
	Holders int
	Holder  string
	Count   int
	// Subscribers listen on the channel, or stand in the queue of a fair lock.
	Subscribers int
}

// Inspect is the call that looks at the lock; View reads its reply.
func (l *Lock) Inspect(deadline time.Time) redisio.Call {
	call, how := l.form.inspect(l)
	call.Deadline = deadline
	return tagged(call, 0, how)
}

// View reads the reply to Inspect.
func (l *Lock) View(tag uint64, reply redisio.Reply) View {
	ttl := reply.N[0]
	v := View{Locked: ttl != -2, TTL: -1, Subscribers: int(reply.N[1]), Holder: reply.S[0]}
	v.Count, _ = strconv.Atoi(reply.S[1])
	if ttl >= 0 {
		v.TTL = milliseconds(ttl)
	}
	switch {
	case !v.Locked:
	case reading(tag) == inspectedHolders:
		v.Holders = int(reply.N[2])
		if v.Holder, v.Locked = strings.CutSuffix(v.Holder, ":write"); !v.Locked {
			v.Mode, v.Locked = core.Shared, true
		}
	default:
		v.Holders = 1
	}
	return v
}
