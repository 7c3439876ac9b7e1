package backend

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// record keeps the record in which the System says who it is: it writes it at once, renews it,
// and removes it at the end. The record outlives every lease, so that a lock whose process was
// killed can be traced to that process for as long as the lock stands.
type record struct {
	server *Server
	says   protocol.Record
	ttl    time.Duration
	// work adds what the System holds and waits for.
	work func(*protocol.Record)
	// refused is told why Redis refuses the record, once.
	refused func(error)
	// covers is the end of the longest lease that the record outlives as it is.
	covers atomic.Int64

	mu sync.Mutex // guards what follows
	// longest is the end of the longest lease that there has been.
	longest lock.Instant
	timer   *time.Timer
	// busy: a call is under way; answered is closed at its end.
	busy     bool
	answered chan struct{}
	closed   bool
	// failed: the last try has failed, and the next comes with the timer. told: refused was told.
	failed, told bool
}

// The TTL of a record is twice the watchdog's, and at least leastRecord. It is renewed every twelfth of
// that, at least every mostRecord: a process that was killed shows as overdue before its leases
// end, and its record outlives them.
const (
	leastRecord = time.Minute
	mostRecord  = time.Minute
)

// Introduce has the System keep a record of who it is. work adds what it holds and waits for, each time that the
// record is written; it must not wait. refused is told, once and on any goroutine, if Redis refuses the record for
// good; the System goes without one then.
func (s *Server) Register(says protocol.Record, watchdog time.Duration, work func(*protocol.Record), refused func(error)) {
	ttl, every := recordTimes(watchdog)
	s.keep(says, ttl, every, work, refused)
}

func recordTimes(watchdog time.Duration) (ttl, every time.Duration) {
	ttl = max(2*watchdog, leastRecord)
	return ttl, min(ttl/12, mostRecord)
}

func (s *Server) keep(says protocol.Record, ttl, every time.Duration, work func(*protocol.Record), refused func(error)) {
	says.Every = every.Milliseconds()
	r := &record{server: s, says: says, ttl: ttl, work: work, refused: refused}
	s.record = r
	r.write()
}

// Outlive sees to it that the record, if there is one, outlives a lease that ends then.
func (s *Server) Outlive(until lock.Instant) {
	if r := s.record; r != nil && int64(until) > r.covers.Load() {
		r.outlive(until)
	}
}

func (r *record) outlive(until lock.Instant) {
	r.mu.Lock()
	longer := until > r.longest
	r.longest = max(until, r.longest)
	longer = longer && !r.failed
	r.mu.Unlock()
	if longer {
		r.write()
	}
}

// write sends the record, unless it is being sent.
func (r *record) write() {
	r.mu.Lock()
	if r.busy || r.closed {
		r.mu.Unlock()
		return
	}
	r.busy, r.answered = true, make(chan struct{})
	if r.timer != nil {
		r.timer.Stop()
	}
	now := r.server.System.Now()
	ttl := r.ttl
	if left := r.longest - now; left > 0 {
		ttl = max(ttl, left+left/50+r.ttl/3) // a lease is trusted for less than its TTL
	}
	r.mu.Unlock()
	says := r.says
	r.work(&says)
	call := says.SystemRenew(r.server.prefix, ttl, time.Now().Add(r.server.callTimeout))
	call.To = receive(func(_ uint64, reply redisio.Reply) { r.written(now+ttl-ttl/50, reply.Err) })
	r.server.redis.RunAlong(call)
}

// written takes the reply: the record outlives leases until then.
func (r *record) written(covers lock.Instant, err *redisio.Error) {
	every := time.Duration(r.says.Every) * time.Millisecond
	r.mu.Lock()
	again, tell := false, false
	pause := every
	r.failed = err != nil
	switch {
	case err == nil:
		r.covers.Store(int64(covers))
		again = r.longest > covers // there is a longer lease since
	case err.Transient:
		pause = min(every, max(every/4, time.Second))
	default:
		r.covers.Store(math.MaxInt64) // nobody needs to ask for what is refused
		tell, r.told = !r.told, true
	}
	r.busy = false
	close(r.answered)
	if !r.closed && !again {
		r.timer = time.AfterFunc(pause, r.write)
	}
	r.mu.Unlock()
	if tell {
		r.refused(err)
	}
	if again {
		r.write()
	}
}

// Leave ends the renewals of the record. It removes the record if nothing else is left in Redis,
// and waits for that until done.
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
	if n := r.covers.Load(); n == 0 || n == math.MaxInt64 || !nothingLeft {
		return
	}
	removed := make(chan struct{})
	call := r.says.SystemRemove(s.prefix, time.Now().Add(s.callTimeout))
	call.To = receive(func(uint64, redisio.Reply) { close(removed) })
	s.redis.Run(call)
	select {
	case <-removed:
	case <-done:
	}
}

// RecordOf looks for the record of a client's System on these servers. It calls done once, on
// any goroutine.
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
		call.To = receive(func(_ uint64, reply redisio.Reply) { found.add(protocol.Inspected(client, reply)) })
		s.redis.Run(call)
	}
}

// recordPage is how many records one call reads.
const recordPage = 100

// ErrMore is that there are more Systems than those whose records were read.
var ErrMore = errors.New("there are more Systems than are listed")

// Records reads the records of all Systems, page by page, and calls done once, on any
// goroutine. Of more than protocol.MostSystems it reads so many, and the error is ErrMore. Each page has the time
// of one call; nothing more is read after the caller has left.
func (s *Server) Records(left <-chan struct{}, done func([]protocol.Record, error)) {
	var all []protocol.Record
	var read func(first int)
	read = func(first int) {
		call := protocol.SystemList(s.prefix, first, recordPage, time.Now().Add(s.callTimeout))
		call.To = receive(func(_ uint64, reply redisio.Reply) {
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
			case next >= protocol.MostSystems:
				done(all, ErrMore)
			default:
				read(next)
			}
		})
		s.redis.Run(call)
	}
	read(0)
}
