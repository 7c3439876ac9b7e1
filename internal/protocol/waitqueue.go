package protocol

import (
	"strconv"
	"time"
	"unique"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// WaitQueue are the settings of the wait queue of a lock.
type WaitQueue struct {
	// OpenTime is machine.Config.OpenTime.
	OpenTime time.Duration
	// OpenEvery is the interval at which the lock is left to foreign clients that are not seen to wait; 0 is never.
	OpenEvery time.Duration
	// OneServer: the server is not part of a cluster, and so knows all subscribers.
	OneServer bool
}

// settings returns the settings as the scripts take them: one argument, since they rarely need it. The locks of a
// process share the text.
func (o *WaitQueue) settings() unique.Handle[string] {
	return unique.Make(ms(o.OpenTime) + " " + digit(o.OneServer) + " " + ms(o.OpenEvery))
}

func (l *Lock) waitQueueSettings() string {
	if l.settings == (unique.Handle[string]{}) {
		l.settings = l.options.WaitQueue.settings()
	}
	return l.settings.Value()
}

// Waiters returns the channel to which a waiter subscribes besides the channel of the release; "" for a fair lock.
func (l *Lock) Waiters() string {
	if l.Form.Queue != nil {
		return ""
	}
	return keyspace.Waiters(l.Key())
}

// entry returns the entry that a command adds or confirms, as the scripts take it; "" without one.
func entry(c *lock.Command) string {
	if c.Entry.Term == 0 {
		return ""
	}
	text := entryText(c.Entry.TTL, c.Entry.Term, c.Seq, c.Entry.Mode == machine.Shared, c.Entry.Tokens, c.Entry.Listens)
	if c.Entry.Reserves {
		text = append(text, " r"...)
		if c.Entry.Waited > 0 {
			text = strconv.AppendInt(text, c.Entry.Waited.Microseconds(), 10)
		}
	}
	return string(text)
}

func entryText(ttl time.Duration, term, seq uint64, shared bool, tokens int64, listens bool) []byte {
	text := make([]byte, 0, 40)
	text = append(strconv.AppendInt(text, ttl.Milliseconds(), 10), ' ')
	text = append(strconv.AppendUint(text, term, 10), ' ')
	text = append(strconv.AppendUint(text, seq, 10), ' ')
	text = append(text, digit(shared)+" "...)
	text = append(strconv.AppendInt(text, tokens, 10), ' ')
	return append(text, digit(listens)...)
}
