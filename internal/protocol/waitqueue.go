package protocol

import (
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Line are the settings of the line of processes that wait for a lock.
type WaitQueue struct {
	// OpenTime is that of lock.Config.
	OpenTime time.Duration
	// OpenEvery is how often the lock is left to clients outside the line of whom nothing is seen; 0
	// is never.
	OpenEvery time.Duration
	// SeesListeners says that the server is alone, and so knows all subscribers: it is no cluster.
	SeesListeners bool
}

// lineSettings is how the scripts take the settings of the line: one argument, since they seldom
// need it.
func (l *Lock) waitQueueSettings() string {
	if l.settings == "" {
		o := &l.options.Line
		l.settings = ms(o.OpenTime) + " " + digit(o.SeesListeners) + " " + ms(o.OpenEvery)
	}
	return l.settings
}

// Waiters returns the channel to which a waiter subscribes besides that of the release, or "".
func (l *Lock) Waiters() string {
	if l.Kind == Fair {
		return ""
	}
	return redisio.Waiters(l.Key)
}

// place is how the scripts take the place that a command takes or confirms.
func entry(c *lock.Command) string {
	if c.Place.Term == 0 {
		return ""
	}
	text := make([]byte, 0, 40)
	text = append(strconv.AppendInt(text, c.Place.TTL.Milliseconds(), 10), ' ')
	text = append(strconv.AppendUint(text, c.Place.Term, 10), ' ')
	text = append(strconv.AppendUint(text, c.Seq, 10), ' ')
	text = append(text, digit(c.Place.Mode == lock.Shared)+" "...)
	text = append(strconv.AppendInt(text, c.Place.Tokens, 10), ' ')
	text = append(text, digit(c.Place.Listens)...)
	if c.Place.Reserves {
		text = append(text, " r"...)
	}
	return string(text)
}
