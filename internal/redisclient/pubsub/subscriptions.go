package pubsub

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// The back-off of reconnects grows from minReconnectPause to maxReconnectPause, with jitter.
	minReconnectPause = 20 * time.Millisecond
	maxReconnectPause = time.Second
	// unusedDelay is the shortest time that an unused channel stays subscribed.
	unusedDelay = 100 * time.Millisecond
	// replacePace bounds the cost of removing unused channels: after a replacement there is no other replacement for
	// replacePace times as long as it took, but at most for maxReplacePause.
	replacePace     = 20
	maxReplacePause = 5 * time.Second
)

// Subscriptions keeps any number of channels subscribed over one connection. It opens the
// connection for the first channel, and reopens it whenever it breaks.
//
// Every connection subscribes to one channel, the first, before all others, until Close. A client that is subscribed to
// another channel is therefore subscribed to the first channel, too, unless Redis refuses it. Then it is requested
// again on the next connection that is opened after a break.
//
// Subscriptions never sends UNSUBSCRIBE. If Redis replies with an error to it, or to the PING that rueidis sends with
// it, rueidis panics on its own goroutine. Redis does so while a script does not end (BUSY) or while it cannot save
// (MISCONF). Instead, a connection with unused channels is soon replaced by a connection without them. The new
// connection is subscribed before the old connection is closed, and the old connection is read to its end. So no
// message is missed, unless the old connection has ended before, which may be known only later. That is why the old
// connection must reply once more; if it does not, the replacement counts as a reconnect. In a cluster the new
// connection leads to the same server, since a message may reach one server later than another, and would reach neither
// connection if they led to two servers.
//
// Shards uses Subscriptions for shard channels, with one connection to each master.
type Subscriptions struct {
	// dedicate returns a connection, or nil if there is none at the moment; see the function dedicate.
	dedicate func(server, avoid string) *conn
	// hasLeft reports whether a server has left its cluster; nil if a leave is noticed in another way.
	hasLeft  func(ctx context.Context, server string) bool
	listener Listener
	first    string
	// reconnected is called for each connection that replaces a broken connection.
	reconnected func()
	// shard is the shard, for shard channels, otherwise nil.
	shard *shard

	mu    sync.Mutex // guards the fields below, and conn.asked
	want  map[string]struct{}
	added []string // added since the last catchUp
	// current is the connection; it may be nil.
	current *conn
	// next is the connection that is being prepared to replace current; it may be nil.
	next *conn
	// unused are the unused channels of current.
	unused map[string]struct{}
	// unusedSince is the time at which the first of them became unused.
	unusedSince time.Time
	// noReplacementUntil is the time until which unused channels do not cause a replacement.
	noReplacementUntil time.Time
	// stale reports that a connection opened before now may lead to the wrong server, and must be replaced at once.
	stale bool
	// retryAt is the time at which the connection must be replaced instead, if the last attempt failed.
	retryAt time.Time
	broke   bool // the connection broke, and nothing is confirmed since
	failure failure
	started bool

	changed chan struct{}
	ctx     context.Context // ends with Close
	close   context.CancelFunc
	done    chan struct{}
	others  sync.WaitGroup // goroutines that open or close connections
}

// NewSubscriptions returns Subscriptions without a connection; the first Add opens it. Every connection subscribes to
// the channel first before all others; first must not be added or removed. The function reconnected is called for each
// connection that replaces a broken connection.
func NewSubscriptions(client rueidis.Client, listener Listener, first string, reconnected func()) *Subscriptions {
	s := newSubscriptions(listener, reconnected)
	s.first, s.want[first] = first, struct{}{}
	s.dedicate = func(server, avoid string) *conn { return dedicate(client, server, avoid) }
	if client.Mode() == rueidis.ClientModeCluster {
		s.hasLeft = func(ctx context.Context, server string) bool { return hasLeft(ctx, client, server) }
	}
	return s
}

func newSubscriptions(listener Listener, reconnected func()) *Subscriptions {
	s := &Subscriptions{
		listener:    listener,
		reconnected: reconnected,
		want:        map[string]struct{}{},
		unused:      map[string]struct{}{},
		changed:     make(chan struct{}, 1),
		done:        make(chan struct{}),
	}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s
}

// Add subscribes to channels, in that order, and returns at once. It calls Listener.Subscribed for
// each when Redis has confirmed, even if the channel was subscribed before.
func (s *Subscriptions) Add(channels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channel := range channels {
		s.want[channel] = struct{}{}
		delete(s.unused, channel)
		s.added = append(s.added, channel)
	}
	if !s.started {
		s.started = true
		go s.run()
	}
	s.wake()
}

// Remove marks channels as unused and returns at once. They stay subscribed for a while.
func (s *Subscriptions) Remove(channels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channel := range channels {
		delete(s.want, channel)
		if s.current.has(channel) {
			s.markUnused(channel)
			s.wake()
		}
	}
}

// Confirmed reports whether Redis has confirmed the subscription to the channel, on a connection
// that is not known to be broken.
func (s *Subscriptions) Confirmed(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.confirmed(channel) || s.next.confirmed(channel)
}

// Replace makes the goroutine replace the connection at once, even a connection that is being opened.
func (s *Subscriptions) Replace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
	s.wake()
}

// takeStale resets stale and returns its value, before a connection is opened.
func (s *Subscriptions) takeStale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale := s.stale
	s.stale = false
	return stale
}

// markUnused records that a channel of the current connection is unused; mu is held.
func (s *Subscriptions) markUnused(channel string) {
	if len(s.unused) == 0 {
		s.unusedSince = time.Now()
	}
	s.unused[channel] = struct{}{}
}

func (s *Subscriptions) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Close closes the connection and waits for the goroutines, for a second or two if the server does
// not answer. A connection that is just being opened may take longer.
func (s *Subscriptions) Close() {
	s.mu.Lock()
	if !s.started {
		s.started = true // Add no longer starts a goroutine
		close(s.done)
	}
	s.close()
	s.mu.Unlock()
	<-s.done
}

func (s *Subscriptions) run() {
	defer close(s.done)
	defer s.others.Wait()
	backoff, avoid := minReconnectPause, ""
	for {
		began := time.Now()
		s.takeStale()
		if connection, err := s.open(s.ctx, "", avoid); err == nil {
			avoid, err = s.serve(connection)
			s.noteFailure(err)
		}
		if s.shard != nil {
			s.shard.noteDisconnected()
		}
		if time.Since(began) > maxReconnectPause {
			backoff = minReconnectPause
		}
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(backoff/2 + rand.N(backoff/2)):
		}
		backoff = min(2*backoff, maxReconnectPause)
	}
}

// serve uses a connection, and the connections that replace it, until a connection breaks, its server leaves the
// cluster, or Close is called. It returns the server that has left, and why a connection broke.
func (s *Subscriptions) serve(connection *conn) (left string, err error) {
	s.mu.Lock()
	s.current, s.noReplacementUntil, s.retryAt = connection, time.Time{}, time.Time{}
	clear(s.unused)
	s.added = s.wanted()
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.ctx)
	replacements := make(chan replacement)
	// giveUp cancels the replacement that is being prepared; nil if there is none. urgent reports whether the
	// replacement is for a stale connection.
	var giveUp context.CancelFunc
	urgent := false
	timer := time.NewTimer(0)
	leaves := s.awaitLeave(ctx)
	defer func() {
		timer.Stop()
		cancel() // ends the connection that is being prepared
		s.mu.Lock()
		s.current, s.broke = nil, true
		s.mu.Unlock()
		s.others.Go(connection.end)
	}()
	for {
		if err := s.catchUp(connection); err != nil {
			return "", err
		}
		switch at, wanted, stale := s.replaceAt(); {
		case wanted && giveUp == nil:
			timer.Reset(time.Until(at))
		case stale && !urgent:
			// The replacement may take long. An urgent replacement is not cancelled, since each may leave a dial in progress.
			giveUp()
			timer.Stop()
		default:
			timer.Stop()
		}
		select {
		case <-s.changed:
		case <-timer.C:
			if _, wanted, _ := s.replaceAt(); wanted && giveUp == nil {
				preparing, end := context.WithCancel(ctx)
				current, stale := connection, s.takeStale()
				giveUp, urgent = end, stale
				s.others.Go(func() { s.prepare(preparing, current, stale, replacements, ctx.Done()) })
			}
		case r := <-replacements:
			giveUp()
			giveUp, urgent = nil, false
			s.noteReplacement(r)
			if r.noRoom {
				return "", nil
			}
			if r.connection == nil {
				continue
			}
			old := connection
			connection = r.connection
			s.adopt(connection)
			err := s.catchUp(connection)
			s.others.Go(func() { s.retire(old) }) // not before the new connection has all channels
			if err != nil {
				return "", err
			}
		case err := <-connection.broken:
			return "", err
		case server := <-leaves:
			if server == connection.server { // the connection may have been replaced meanwhile
				return server, nil
			}
		case <-s.ctx.Done():
			return "", nil
		}
	}
}

// wanted returns the channels to subscribe to: the first channel, then the other channels sorted by name. So the
// channels of Waiters come before the channels of the locks, and this client is never counted as a foreign client
// meanwhile. mu is held.
func (s *Subscriptions) wanted() []string {
	return slices.SortedFunc(maps.Keys(s.want), func(a, b string) int {
		if a == b || a != s.first && b != s.first {
			return strings.Compare(a, b)
		} else if a == s.first {
			return -1
		}
		return 1
	})
}

// channels is wanted, without mu held.
func (s *Subscriptions) channels() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// replaceAt returns the time at which the current connection should be replaced. wanted is false if it need not be
// replaced; stale reports that it may lead to the wrong server.
func (s *Subscriptions) replaceAt() (at time.Time, wanted, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stale:
		return s.retryAt, true, true
	case len(s.unused) > 0:
		return later(s.unusedSince.Add(unusedDelay), s.noReplacementUntil), true, false
	}
	return time.Time{}, false, false
}

// noteReplacement records the result of a replacement, for replaceAt.
func (s *Subscriptions) noteReplacement(r replacement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noReplacementUntil, s.retryAt = time.Now().Add(r.pause), time.Time{}
	if r.connection == nil && r.stale {
		s.retryAt, s.stale = time.Now().Add(maxReconnectPause), true
	}
}

// catchUp subscribes to the channels that were added, and notifies the listener of the channels that are confirmed
// already.
func (s *Subscriptions) catchUp(connection *conn) error {
	s.mu.Lock()
	var more, already []string
	for _, channel := range s.added {
		_, wanted := s.want[channel]
		confirmed, asked := connection.asked[channel]
		switch {
		case wanted && !asked:
			connection.asked[channel] = false
			more = append(more, channel)
		case wanted && confirmed:
			already = append(already, channel)
		}
	}
	s.added = nil
	s.mu.Unlock()

	for _, channel := range already {
		s.listener.Subscribed(channel)
	}
	return s.subscribe(s.ctx, connection, more)
}

// noteConfirmed records that Redis has confirmed a channel, and notifies the listener unless it was notified
// because of the other connection.
func (s *Subscriptions) noteConfirmed(by *conn, channel string) {
	s.mu.Lock()
	if by != s.current && by != s.next { // the connection is being closed
		s.mu.Unlock()
		return
	}
	other := s.current
	if other == by {
		other = s.next
	}
	before, asked := by.asked[channel]
	if asked {
		by.asked[channel] = true
	}
	_, wanted := s.want[channel]
	notify := wanted && asked && !before && (other == nil || !other.asked[channel])
	again, recovered := s.broke, s.failure.reported
	s.broke, s.failure = false, failure{}
	s.mu.Unlock()
	if recovered {
		s.listener.Recovered(s.commandName(), s.server())
	}
	if again {
		s.reconnected()
	}
	if notify {
		s.listener.Subscribed(channel)
	}
}

// noteSlotsMoved records that this server no longer has the slots of channels. master is the address of the new master,
// or "" if Redis did not name it.
func (s *Subscriptions) noteSlotsMoved(by *conn, channels []string, master string) {
	s.mu.Lock()
	for _, channel := range channels {
		delete(by.asked, channel)
	}
	s.mu.Unlock()
	s.shard.noteSlotsMoved(channels, master)
}
