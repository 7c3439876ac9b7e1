package redisio

import (
	"errors"
	"net"
	"time"
)

// A subscription that has failed so often, and for so long, keeps failing.
const (
	failingTimes = 3
	failingAfter = 2 * time.Second
)

// failure is what has become of the subscriptions since the last one that succeeded.
type failure struct {
	times int
	since time.Time
	told  bool
}

// failed takes note of why a connection broke, and tells the listener if that goes on: else a proxy
// that closes the connection at SUBSCRIBE would slow all waits down without a word. That there is no
// server at all is told of the calls.
func (s *Subscriptions) failed(err error) {
	if dial := (*net.OpError)(nil); err == nil || s.ctx.Err() != nil || errors.As(err, &dial) && dial.Op == "dial" {
		return
	}
	s.mu.Lock()
	f := &s.failure
	if f.times++; f.times == 1 {
		f.since = time.Now()
	}
	tell := !f.told && f.times >= failingTimes && time.Since(f.since) >= failingAfter
	f.told = f.told || tell
	s.mu.Unlock()
	if tell {
		s.listener.Failing(s.commandName(), s.server(), Sort(err))
	}
}

// commandName is the command by which the channels are subscribed to.
func (s *Subscriptions) commandName() string {
	if s.home != nil {
		return "SSUBSCRIBE"
	}
	return "SUBSCRIBE"
}

// server is the address of the master, of shard channels, else "".
func (s *Subscriptions) server() string {
	if s.home != nil {
		return s.home.address
	}
	return ""
}
