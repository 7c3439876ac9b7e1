package lock

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// backoff is the pause before a command about a lease of that length is sent again.
func (l *Lock) backoff(tries int, lease time.Duration) time.Duration {
	return l.jitter(machine.Backoff(tries, lease, lease/6))
}

// waitersBackoff is the pause before the next try to get a lease of that length. There is no lease yet
// that could end, so the pause may grow longer than the lease.
func (l *Lock) waitersBackoff(tries int, lease time.Duration) time.Duration {
	return l.jitter(machine.Backoff(tries, lease, l.cfg.Watchdog/6))
}

func (l *Lock) jitter(d time.Duration) time.Duration { return l.cfg.Jitter(d, l.seq) }
