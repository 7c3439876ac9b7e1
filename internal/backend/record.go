package backend

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// record keeps the record that describes the System in Redis: it writes the record at once, renews it, and removes it
// at the end. The record outlives every lease, so that a lock can be traced to a process that was killed as long as the
// lock exists.
type record struct {
	server  *Server
	content protocol.Record
	ttl     time.Duration
	// work adds the locks that the System holds and waits for.
	work func(*protocol.Record)
	// onRefused gets the error if Redis refuses the record, once until it is written again.
	onRefused func(error)
	// coveredUntil is the time before which a lease must end for the record to outlive it.
	coveredUntil atomic.Int64

	mu sync.Mutex // guards the fields below
	// longestLease is the end of the longest lease so far.
	longestLease machine.Instant
	timer        *time.Timer
	// busy: a call is in progress.
	busy bool
	// answered is closed at the end of the call in progress.
	answered chan struct{}
	closed   bool
	// lastWrite is the time at which the last write began.
	lastWrite time.Time
	// stale: the work has changed since lastWrite.
	stale bool
	// failed: the last try has failed, and the timer starts the next try.
	failed bool
	// reported: onRefused was called.
	reported bool
}

// The TTL of a record is twice the watchdog's, and at least minRecordTTL. The record is renewed every twelfth of its
// TTL, and at least every maxRecordInterval, so that a process that was killed is overdue before its leases end, and
// its record outlives them.
const (
	minRecordTTL      = time.Minute
	maxRecordInterval = time.Minute
)

// changePause is the minimum time between two writes because the work has changed.
const changePause = 100 * time.Millisecond

// Register keeps a record that describes the System in Redis. work adds the locks that the System holds and waits for,
// each time that the record is written; it must not block. refused is called, on any goroutine, if Redis refuses the
// record permanently; the System then has no record. It is called again only after the record was written in between.
func (s *Server) Register(content protocol.Record, watchdog time.Duration, work func(*protocol.Record), refused func(error)) {
	ttl, every := recordTimes(watchdog)
	s.keep(content, ttl, every, work, refused)
}

func recordTimes(watchdog time.Duration) (ttl, every time.Duration) {
	ttl = max(2*watchdog, minRecordTTL)
	return ttl, min(ttl/12, maxRecordInterval)
}

func (s *Server) keep(content protocol.Record, ttl, every time.Duration, work func(*protocol.Record), refused func(error)) {
	content.Every = every.Milliseconds()
	r := &record{server: s, content: content, ttl: ttl, work: work, onRefused: refused}
	s.record = r
	r.write()
}

// Outlive extends the record, if there is one, so that it outlives a lease that ends at until.
func (s *Server) Outlive(until machine.Instant) {
	if r := s.record; r != nil && int64(until) > r.coveredUntil.Load() {
		r.outlive(until)
	}
}

func (r *record) outlive(until machine.Instant) {
	r.mu.Lock()
	longer := until > r.longestLease
	r.longestLease = max(until, r.longestLease)
	longer = longer && !r.failed
	r.mu.Unlock()
	if longer {
		r.write()
	}
}

// RecordChanged writes the record soon, if there is one, because the work has changed in a way that other processes
// should see. It does not block. However often it is called, there are at most ten writes a second.
func (s *Server) RecordChanged() {
	r := s.record
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.busy:
		r.stale = true
	case r.timer != nil && !r.closed && !r.failed: // otherwise a write follows anyway, or none may follow
		r.timer.Reset(max(changePause-time.Since(r.lastWrite), 0))
	}
}

// write sends the record, unless it is being sent.
func (r *record) write() {
	r.mu.Lock()
	if r.busy || r.closed {
		r.mu.Unlock()
		return
	}
	r.busy, r.answered, r.lastWrite, r.stale = true, make(chan struct{}), time.Now(), false
	if r.timer != nil {
		r.timer.Stop()
	}
	now := r.server.clock.Now()
	ttl := r.ttl
	if left := r.longestLease - now; left > 0 {
		ttl = max(ttl, left+left/50+r.ttl/3) // a lease is trusted for less than its TTL
	}
	r.mu.Unlock()
	content := r.content
	r.work(&content)
	call := content.SystemRenew(r.server.prefix, ttl, time.Now().Add(r.server.callTimeout))
	call.To = receive(func(_ uint64, reply redisclient.Reply) { r.handleReply(now+ttl-ttl/50, reply.Err) })
	r.server.redis.Piggyback(call)
}

// handleReply handles the reply to a write after which the record outlives leases that end until coveredUntil.
func (r *record) handleReply(coveredUntil machine.Instant, err *redisio.Error) {
	every := time.Duration(r.content.Every) * time.Millisecond
	r.mu.Lock()
	again, report := false, false
	pause := every
	r.failed = err != nil
	switch {
	case err == nil:
		if r.stale {
			pause = changePause
		}
		r.coveredUntil.Store(int64(coveredUntil))
		again = r.longestLease > coveredUntil // a longer lease was added since
		r.reported = false
	case err.Transient:
		pause = min(every, max(every/4, time.Second))
	default:
		r.coveredUntil.Store(math.MaxInt64) // do not write it again because of leases
		report, r.reported = !r.reported, true
	}
	r.busy = false
	close(r.answered)
	if !r.closed && !again {
		r.timer = time.AfterFunc(pause, r.write)
	}
	r.mu.Unlock()
	if report {
		r.onRefused(err)
	}
	if again {
		r.write()
	}
}

// Unregister ends the renewals of the record. If nothing else is left in Redis, it removes the record, and waits for
// the removal until done is closed.
func (s *Server) Unregister(nothingLeft bool, done <-chan struct{}) {
	r := s.record
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
	answered := r.answered
	r.mu.Unlock()
	select {
	case <-answered:
	case <-done:
		return
	}
	if n := r.coveredUntil.Load(); n == 0 || n == math.MaxInt64 || !nothingLeft {
		return
	}
	removed := make(chan struct{})
	call := r.content.SystemRemove(s.prefix, time.Now().Add(s.callTimeout))
	call.To = receive(func(uint64, redisclient.Reply) { close(removed) })
	s.redis.Run(call)
	select {
	case <-removed:
	case <-done:
	}
}

// RecordOf reads the record of a client's System from the servers. It calls done once, on any goroutine, with only
// Client set if there is no record.
func RecordOf(client string, servers []*Server, deadline time.Time, done func(protocol.Record)) {
	found := &collect[protocol.Record]{n: len(servers), judge: func(all []protocol.Record, last bool) (func(), bool) {
		one := all[len(all)-1]
		known := one.TTL != 0
		if !known && !last {
			return nil, false
		}
		return func() { done(one) }, true
	}}
	for _, s := range servers {
		call := protocol.SystemInspect(s.prefix, client, deadline)
		call.To = receive(func(_ uint64, reply redisclient.Reply) { found.add(protocol.Inspected(client, reply)) })
		s.redis.Run(call)
	}
}

// recordPage is the number of records that one call reads: as 8 KiB each they hold Redis for some 5 ms.
const recordPage = 50

// ErrMoreSystems is the error if there are Systems whose records were not read.
var ErrMoreSystems = errors.New("there are more Systems than are listed")

// Records reads the records of all Systems, page by page, and calls done once, on any goroutine. It reads at most
// protocol.MaxSystems records, and the error is ErrMoreSystems if there are more Systems. Each page has the time of one
// call. When left is closed, it stops after the current page, and does not call done.
func (s *Server) Records(left <-chan struct{}, done func([]protocol.Record, error)) {
	var all []protocol.Record
	var read func(first int)
	read = func(first int) {
		call := protocol.SystemList(s.prefix, first, recordPage, time.Now().Add(s.callTimeout))
		call.To = receive(func(_ uint64, reply redisclient.Reply) {
			if reply.Err != nil {
				done(nil, reply.Err)
				return
			}
			page, n, next := protocol.Listed(reply)
			all = append(all, page...)
			select {
			case <-left:
				return
			default:
			}
			switch {
			case next <= first || next >= n:
				done(all, nil)
			case next >= protocol.MaxSystems:
				done(all, ErrMoreSystems)
			default:
				read(next)
			}
		})
		s.redis.Run(call)
	}
	read(0)
}
