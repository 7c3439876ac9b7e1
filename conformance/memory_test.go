package conformance

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// memory is a lock service in memory, and about the smallest adapter that there can be.
// Its flaws are for the suite to find.
type memory struct {
	flaw  string
	mu    sync.Mutex
	locks map[string]*state
}

type state struct {
	holder  *held
	waiters []*waiter
}

type waiter struct {
	client *memoryClient
	lease  time.Duration
	wake   chan *held
}

type memoryClient struct {
	*memory
	closed chan struct{}
}

type held struct {
	client   *memoryClient
	lock     string
	lost     chan struct{}
	timer    *time.Timer
	released bool
	gone     bool
}

func (m *memory) Traits() Traits { return Traits{TTL: 200 * time.Millisecond, Ordered: true} }

func (m *memory) Open(t testing.TB) Client {
	c := &memoryClient{memory: m, closed: make(chan struct{})}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (m *memory) Left(_ testing.TB, lock string) (left []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.locks[lock]; s != nil && (s.holder != nil || len(s.waiters) > 0) {
		left = append(left, lock)
	}
	return left
}

func (m *memory) state(lock string) *state {
	if m.locks[lock] == nil {
		m.locks[lock] = &state{}
	}
	return m.locks[lock]
}

func (m *memory) grant(c *memoryClient, lock string, lease time.Duration) *held {
	h := &held{client: c, lock: lock, lost: make(chan struct{})}
	m.state(lock).holder = h
	if lease != 0 && m.flaw != "a lease without an end" {
		h.timer = time.AfterFunc(lease, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.lose(h)
		})
	}
	return h
}

func (m *memory) lose(h *held) {
	if m.state(h.lock).holder != h {
		return
	}
	h.gone = true
	if m.flaw != "loss is silent" {
		close(h.lost)
	}
	m.free(h.lock)
}

func (m *memory) free(lock string) {
	s := m.state(lock)
	s.holder = nil
	if len(s.waiters) > 0 {
		i := 0
		if m.flaw == "last come, first served" {
			i = len(s.waiters) - 1
		}
		w := s.waiters[i]
		s.waiters = slices.Delete(s.waiters, i, i+1)
		w.wake <- m.grant(w.client, lock, w.lease)
	}
}

func (c *memoryClient) Acquire(ctx context.Context, lock string, r Request) (Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	select {
	case <-c.closed:
		c.mu.Unlock()
		return nil, ErrClosed
	default:
	}
	s := c.state(lock)
	switch {
	case s.holder == nil || c.flaw == "no exclusion":
		defer c.mu.Unlock()
		return c.grant(c, lock, r.Lease), nil
	case r.Try:
		c.mu.Unlock()
		return nil, ErrHeld
	}
	w := &waiter{client: c, lease: r.Lease, wake: make(chan *held, 1)}
	s.waiters = append(s.waiters, w)
	c.mu.Unlock()
	var over <-chan time.Time
	if r.Wait != 0 {
		timer := time.NewTimer(r.Wait)
		defer timer.Stop()
		over = timer.C
	}
	var err error
	select {
	case h := <-w.wake:
		return h, nil
	case <-over:
		err = ErrTimeout
	case <-c.closed:
		err = ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flaw == "a waiter that left stays" {
		return nil, err
	}
	if i := slices.Index(s.waiters, w); i >= 0 {
		s.waiters = slices.Delete(s.waiters, i, i+1)
		return nil, err
	}
	if c.flaw != "a grant for nobody stays" {
		c.free(lock)
	}
	return nil, err
}

func (c *memoryClient) Inspect(_ context.Context, lock string) (status Status, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state(lock)
	if s.holder != nil {
		status = Status{Locked: true, HeldHere: s.holder.client == c, Count: 1}
	}
	for _, w := range s.waiters {
		if status.Queue++; w.client == c {
			status.Waiters++
		}
	}
	return status, nil
}

func (c *memoryClient) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return nil
	default:
	}
	close(c.closed)
	if c.flaw == "a goroutine is left" {
		go func() { select {} }()
	}
	for _, s := range c.locks {
		s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool { return w.client == c })
		if s.holder != nil && s.holder.client == c && c.flaw != "a close without a release" {
			c.lose(s.holder)
		}
	}
	return nil
}

func (h *held) Release(context.Context) error {
	m := h.client.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.flaw == "a late release frees":
		m.free(h.lock)
		return nil
	case h.gone:
		return ErrLost
	case h.released:
		return ErrNotHeld
	}
	h.released = true
	if h.timer != nil {
		h.timer.Stop()
	}
	if m.state(h.lock).holder == h {
		m.free(h.lock)
	}
	return nil
}

func (h *held) Lost() <-chan struct{} { return h.lost }
