package pubsub

import (
	"errors"
	"net"
	"time"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Subscriptions are reported as failing after failingTimes failures in a row, and not before failingAfter since the
// first failure.
const (
	failingTimes = 3
	failingAfter = 2 * time.Second
)

// failure counts the failures since the last successful subscription.
type failure struct {
	times    int
	since    time.Time
	reported bool
}

// noteFailure records why a connection broke, and notifies the listener if that continues: otherwise a proxy
// that closes the connection at SUBSCRIBE would slow down all waits unnoticed. A server that cannot be
// dialed is not reported here, since the calls report it.
func (s *Subscriptions) noteFailure(err error) {
	if dial := (*net.OpError)(nil); err == nil || s.ctx.Err() != nil || errors.As(err, &dial) && dial.Op == "dial" {
		return
	}
	s.mu.Lock()
	f := &s.failure
	if f.times++; f.times == 1 {
		f.since = time.Now()
	}
	report := !f.reported && f.times >= failingTimes && time.Since(f.since) >= failingAfter
	f.reported = f.reported || report
	s.mu.Unlock()
	if report {
		s.listener.Failing(s.commandName(), s.server(), redisio.Classify(err))
	}
}

// commandName returns the command that subscribes to the channels.
func (s *Subscriptions) commandName() string {
	if s.shard != nil {
		return "SSUBSCRIBE"
	}
	return "SUBSCRIBE"
}

// server returns the address of the master for shard channels, otherwise "".
func (s *Subscriptions) server() string {
	if s.shard != nil {
		return s.shard.address
	}
	return ""
}
