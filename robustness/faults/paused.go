package faults

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// store is a number protected by a lock. If it is fenced, it refuses a write with a token
// older than the latest.
type store struct {
	mu                    sync.Mutex
	fenced                bool
	value                 int
	token                 int64
	acknowledged, refused int
}

func (s *store) write(value int, token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fenced && token < s.token {
		s.refused++
		return
	}
	s.token = max(s.token, token)
	s.value = value
	s.acknowledged++
}

// PausedHolder lets two client processes add 1 to a number under a fenced lock. The first
// is stopped between its check of the hold and its write, for longer than its lease. It
// returns the final number, and how many writes the store has acknowledged and refused.
func PausedHolder(binary string, fenced bool) (value, acknowledged, refused int, err error) {
	const lease = 300 * time.Millisecond
	w, err := New(binary,
		traffic.Plan{Watchdog: time.Second, Poll: 100 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second}, 2, 1)
	if err != nil {
		return 0, 0, 0, err
	}
	defer w.Kill()
	s := &store{fenced: fenced}
	first, second := w.clients[0], w.clients[1]

	// take makes a client acquire the lock and check the hold.
	take := func(c *client) (token int64, err error) {
		if err := c.order(traffic.Take, lease.Milliseconds()); err != nil {
			return 0, err
		}
		line, err := c.readLine(limit)
		if err == nil {
			_, err = fmt.Sscanf(line, traffic.Took+" %d", &token)
		}
		return token, err
	}
	// add makes a client write, without another check of the hold.
	add := func(c *client, read int, token int64) error {
		if err := c.order(traffic.Write, read+1, token); err != nil {
			return err
		}
		line, err := c.readLine(limit)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscanf(line, traffic.Write+" %d %d", &read, &token); err != nil {
			return err
		}
		s.write(read, token)
		return c.expect(traffic.Gave, limit)
	}

	token, err := take(first)
	if err != nil {
		return 0, 0, 0, err
	}
	read := s.value
	if err := first.signal(syscall.SIGSTOP); err != nil {
		return 0, 0, 0, err
	}
	later, err := take(second) // when the first's lease is over
	if err != nil {
		return 0, 0, 0, err
	}
	if err := add(second, s.value, later); err != nil {
		return 0, 0, 0, err
	}
	if err := first.signal(syscall.SIGCONT); err != nil {
		return 0, 0, 0, err
	}
	if err := add(first, read, token); err != nil {
		return 0, 0, 0, err
	}
	return s.value, s.acknowledged, s.refused, nil
}
