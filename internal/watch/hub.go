package watch

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// ErrClosed: the Hub was closed.
var ErrClosed = errors.New("closed")

// Hub has the locks that are watched in a System. A lock has one goroutine, which reads its state for all its watchers,
// as long as it has watchers. The zero Hub is ready to use.
type Hub struct {
	mu       sync.Mutex // guards the fields below, and the fields of the subjects
	subjects map[any]*subject
	closed   bool
	readers  sync.WaitGroup
}

// How says how a lock is watched.
type How struct {
	// Read reads the state of the lock, and returns at once when ctx ends. final reports that after the error no read
	// will succeed.
	Read func(ctx context.Context) (status *messages.Status, final bool, err error)
	// Listen calls heard when the lock may have changed, until stop is called.
	Listen func(heard func()) (stop func())
	// Poll is the time between two reads if nothing is heard.
	Poll time.Duration
}

// minPause is the minimum time between two reads because of messages, unless Poll is shorter.
const minPause = 100 * time.Millisecond

// subject is a lock that is watched.
type subject struct {
	How
	hub *Hub
	key any
	// ctx ends with the last watcher, and when the Hub is closed.
	ctx    context.Context
	cancel context.CancelFunc
	heard  chan struct{}

	watchers int
	// state is the state at the last successful read.
	state State
	// err is the error of the last read.
	err error
	// version is the number of changes, and of first errors, for the watchers.
	version uint64
	// news is closed when version grows.
	news chan struct{}
	// ended: no read follows.
	ended bool
}

// Watcher gets the latest state of a lock.
type Watcher struct {
	of   *subject
	seen uint64
}

// Join begins to watch the lock with that key. The caller must call Leave.
func (h *Hub) Join(key any, how How) *Watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.subjects[key]
	if s == nil || s.ended {
		s = &subject{How: how, hub: h, key: key, heard: make(chan struct{}, 1), news: make(chan struct{})}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		if h.subjects == nil {
			h.subjects = map[any]*subject{}
		}
		h.subjects[key] = s
		if h.closed {
			s.end(ErrClosed)
		} else {
			h.readers.Go(s.run)
		}
	}
	s.watchers++
	return &Watcher{of: s}
}

// Leave ends the watch. The goroutine of the lock ends with the last watch.
func (w *Watcher) Leave() {
	s := w.of
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.watchers--; s.watchers > 0 {
		return
	}
	s.cancel()
	if s.hub.subjects[s.key] == s {
		delete(s.hub.subjects, s.key)
	}
}

// Next waits for a state or an error that the Watcher has not returned yet, and returns the latest state or error, or
// the cause of ctx. After ErrClosed, and after a final error, it returns nothing else until ctx ends.
func (w *Watcher) Next(ctx context.Context) (State, error) {
	s := w.of
	for ctx.Err() == nil {
		s.hub.mu.Lock()
		state, err, version, news := s.state, s.err, s.version, s.news
		s.hub.mu.Unlock()
		if version != w.seen {
			w.seen = version
			return state, err
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
	return State{}, context.Cause(ctx)
}

// Close ends all watches with ErrClosed, and waits for their goroutines.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, s := range h.subjects {
		s.end(ErrClosed)
	}
	h.mu.Unlock()
	h.readers.Wait()
}

// run reads the state of the lock until it is ended.
func (s *subject) run() {
	defer s.Listen(s.hear)()
	for {
		began := time.Now()
		status, final, err := s.Read(s.ctx)
		if s.ctx.Err() != nil || !s.noteRead(status, final, err) || !s.rest(began) {
			return
		}
	}
}

func (s *subject) hear() {
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

// noteRead handles the result of a read, and reports whether another read is to follow. The first of several errors is
// news, and so is the state after them.
func (s *subject) noteRead(status *messages.Status, final bool, err error) (again bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	switch {
	case s.ended:
	case final:
		s.end(err)
	case err != nil:
		if first := s.err == nil; first {
			s.err = err
			s.publish()
		}
	default:
		state, changed := s.state.next(status, time.Now())
		failed := s.err != nil
		s.state, s.err = state, nil
		if changed || failed {
			s.publish()
		}
	}
	return !s.ended
}

// publish wakes the watchers; the caller has the lock of the Hub.
func (s *subject) publish() {
	s.version++
	close(s.news)
	s.news = make(chan struct{})
}

// end ends the reads; the caller has the lock of the Hub.
func (s *subject) end(err error) {
	if !s.ended {
		s.ended, s.err = true, err
		s.publish()
		s.cancel()
	}
}

// rest waits until the next read is due, and reports whether it is to be made.
func (s *subject) rest(began time.Time) (again bool) {
	// Otherwise processes that have heard the same message would always read at the same time.
	timer := time.NewTimer(time.Until(began.Add(s.Poll + rand.N(s.Poll/10))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	case <-s.heard:
	}
	timer.Reset(time.Until(began.Add(min(minPause, s.Poll))))
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
