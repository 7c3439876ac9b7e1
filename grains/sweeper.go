package grains

import (
	"context"
	"strconv"
	"sync"
)

// entryText returns the entry of a grain that a member has registered with a token.
func entryText(member string, token int64) string { return member + "#" + strconv.FormatInt(token, 10) }

// sweeper removes the entries of grains that have stopped, many in one call. An entry that stays does no harm. The
// member that it names registers the grain again when it is asked; a dead member's entries are buried.
type sweeper struct {
	sweep func(context.Context, []entryOf) error

	sweeping sync.Mutex // held while a call is in progress

	mu      sync.Mutex
	entries []entryOf
	running bool
	// failed: entries of this term stay.
	failed bool
}

// add adds an entry. A goroutine removes it soon.
func (s *sweeper) add(e entryOf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = append(s.entries, e)
	if !s.running {
		s.running = true
		go s.run()
	}
}

// run removes entries until there are none.
func (s *sweeper) run() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		more := s.step(ctx, true)
		cancel()
		if !more {
			return
		}
	}
}

// step removes some entries.
func (s *sweeper) step(ctx context.Context, ends bool) (more bool) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.mu.Lock()
	n := min(len(s.entries), maxEntries)
	some := s.entries[:n:n]
	s.entries = s.entries[n:]
	if n == 0 {
		s.running = s.running && !ends
	}
	s.mu.Unlock()
	if n == 0 {
		return false
	}
	if err := s.sweep(ctx, some); err != nil {
		s.mu.Lock()
		s.failed = true
		s.mu.Unlock()
	}
	return true
}

// flush removes the last entries of a term, and reports whether all entries of the term are removed.
func (s *sweeper) flush(ctx context.Context) bool {
	for s.step(ctx, false) {
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := !s.failed
	s.failed = false
	return all
}

// sweep removes entries from Redis.
func (d *Directory) sweep(ctx context.Context, gone []entryOf) error {
	return d.redis.unregister(ctx, "", gone)
}
