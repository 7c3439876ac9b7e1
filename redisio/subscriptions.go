package redisio

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
	// Reconnecting backs off from the first to the second, with jitter.
	reconnectFirst = 20 * time.Millisecond
	reconnectMost  = time.Second
	// linger is how long a channel that nobody wants any more stays subscribed, at least.
	linger = 100 * time.Millisecond
	// replacePace bounds what it costs to get rid of unused channels: a replacement that has
	// taken so long is followed by that many times as long without another, or by replaceRest.
	replacePace = 20
	replaceRest = 5 * time.Second
)

// Subscriptions keeps any number of channels subscribed over one connection. It opens the
// connection for the first channel, and reopens it whenever it breaks.
//
// One channel comes first: every connection subscribes to it before all others, and it stays until
// Close. Whoever is subscribed to another channel is therefore subscribed to this one too, unless
// Redis refuses it. It is then asked for again on the next connection that is opened after a break.
//
// It never sends UNSUBSCRIBE: if Redis answers that, or the PING that rueidis sends with it,
// with an error, rueidis panics on a goroutine of its own; and Redis refuses both while a script
// does not end (BUSY) or while it cannot save (MISCONF). Instead, a connection with unused
// channels is soon replaced by one without them. The new connection is subscribed before the old
// one is closed, and the old one is read to its end, so no message is missed.
//
// Shards keeps shard channels in this way, over one such connection to each master.
type Subscriptions struct {
	// dedicate gives a connection; false: there is none, for now.
	dedicate func() (connection rueidis.DedicatedClient, giveBack func(), ok bool)
	listener Listener
	first    string
	watch    *Watch
	// home is the shard, of shard channels; nil for others.
	home *shard

	mu      sync.Mutex // guards what follows, and what is asked of the connections
	want    map[string]struct{}
	touched []string // added, and not yet looked at by the goroutine
	// current is the connection; next is the one that is to replace it, while that is
	// being prepared. Both may be nil.
	current, next *pubsub
	// lingering are the channels of current that nobody wants, since then.
	lingering map[string]struct{}
	since     time.Time
	rest      time.Time // until when no connection is replaced because of them
	// stale says that a connection opened before now may lead to the wrong server: it is to be
	// replaced at once, or after retry if the last attempt failed.
	stale   bool
	retry   time.Time
	broke   bool // and nothing is confirmed since
	failure failure
	started bool

	changed chan struct{}
	ctx     context.Context // ends with Close
	close   context.CancelFunc
	done    chan struct{}
	others  sync.WaitGroup // goroutines that open or close connections
}

// NewSubscriptions returns Subscriptions without a connection; the first Add opens it. first is the
// channel that comes first, and is never added or removed.
func (r *Redis) NewSubscriptions(listener Listener, first string) *Subscriptions {
	s := newSubscriptions(listener, &r.pool.watch)
	s.first, s.want[first] = first, struct{}{}
	s.dedicate = func() (rueidis.DedicatedClient, func(), bool) {
		connection, giveBack := r.client.Dedicate()
		return connection, giveBack, true
	}
	r.stale.add(s)
	return s
}

func newSubscriptions(listener Listener, watch *Watch) *Subscriptions {
	s := &Subscriptions{
		listener:  listener,
		watch:     watch,
		want:      map[string]struct{}{},
		lingering: map[string]struct{}{},
		changed:   make(chan struct{}, 1),
		done:      make(chan struct{}),
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
		delete(s.lingering, channel)
		s.touched = append(s.touched, channel)
	}
	if !s.started {
		s.started = true
		go s.run()
	}
	s.wake()
}

// Remove gives up channels and returns at once. They stay subscribed for a while.
func (s *Subscriptions) Remove(channels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channel := range channels {
		delete(s.want, channel)
		if s.current.has(channel) {
			s.lingers(channel)
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

// replace has the connection replaced at once, though nothing lingers. One that is being opened
// counts as one that there is.
func (s *Subscriptions) replace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
	s.wake()
}

// takeStale reports whether the connection is to be replaced at once, by one opened from now on.
func (s *Subscriptions) takeStale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale := s.stale
	s.stale = false
	return stale
}

// lingers notes that a channel of the current connection is not wanted; mu is held.
func (s *Subscriptions) lingers(channel string) {
	if len(s.lingering) == 0 {
		s.since = time.Now()
	}
	s.lingering[channel] = struct{}{}
}

func (s *Subscriptions) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Close ends the connection and waits for its goroutines, for a second or two if the server does
// not answer. A connection that is just being opened may take longer to end.
func (s *Subscriptions) Close() {
	s.mu.Lock()
	if !s.started {
		s.started = true // nothing starts any more
		close(s.done)
	}
	s.close()
	s.mu.Unlock()
	<-s.done
}

func (s *Subscriptions) run() {
	defer close(s.done)
	defer s.others.Wait()
	backoff := reconnectFirst
	for {
		began := time.Now()
		s.takeStale()
		if connection, err := s.open(s.ctx); err == nil {
			s.failed(s.serve(connection))
		}
		if s.home != nil {
			s.home.broke()
		}
		if time.Since(began) > reconnectMost {
			backoff = reconnectFirst
		}
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(backoff/2 + rand.N(backoff/2)):
		}
		backoff = min(2*backoff, reconnectMost)
	}
}

// serve uses a connection, and those that replace it, until one breaks or everything is closed. It
// returns why a connection broke, or nil.
func (s *Subscriptions) serve(connection *pubsub) error {
	s.mu.Lock()
	s.current, s.rest, s.retry = connection, time.Time{}, time.Time{}
	clear(s.lingering)
	s.touched = s.wanted()
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.ctx)
	replacements := make(chan replacement)
	// giveUp gives up the replacement that is being prepared; nil if none is. urgent: that is for a
	// connection that was stale.
	var giveUp context.CancelFunc
	urgent := false
	timer := time.NewTimer(0)
	defer func() {
		timer.Stop()
		cancel() // which ends the connection that is being prepared
		s.mu.Lock()
		s.current, s.broke = nil, true
		s.mu.Unlock()
		s.others.Go(connection.end)
	}()
	for {
		if err := s.catchUp(connection); err != nil {
			return err
		}
		switch at, wanted, stale := s.replaceAt(); {
		case wanted && giveUp == nil:
			timer.Reset(time.Until(at))
		case stale && !urgent:
			giveUp() // it may take long. An urgent one is let finish: each may leave a dial behind
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
			s.prepared(r)
			if r.noRoom {
				return nil
			}
			if r.connection == nil {
				continue
			}
			old := connection
			connection = r.connection
			s.adopt(connection)
			err := s.catchUp(connection)
			s.others.Go(old.end) // not before the new one has everything
			if err != nil {
				return err
			}
		case err := <-connection.broken:
			return err
		case <-s.ctx.Done():
			return nil
		}
	}
}

// wanted are the channels to subscribe to, the first one first, and then by their names: so those
// of Waiters come before those of the locks, and nobody counts as a stranger meanwhile. mu is held.
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

// channels are those that are wanted.
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

// replaceAt is when the current connection should be replaced, if at all; stale: because it may lead to
// the wrong server.
func (s *Subscriptions) replaceAt() (at time.Time, wanted, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stale:
		return s.retry, true, true
	case len(s.lingering) > 0:
		return later(s.since.Add(linger), s.rest), true, false
	}
	return time.Time{}, false, false
}

// prepared takes note of how a replacement went, for replaceAt.
func (s *Subscriptions) prepared(r replacement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest, s.retry = time.Now().Add(r.pause), time.Time{}
	if r.connection == nil && r.stale {
		s.retry, s.stale = time.Now().Add(reconnectMost), true
	}
}

// catchUp subscribes to what was added.
func (s *Subscriptions) catchUp(connection *pubsub) error {
	s.mu.Lock()
	var more, already []string
	for _, channel := range s.touched {
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
	s.touched = nil
	s.mu.Unlock()

	for _, channel := range already {
		s.listener.Subscribed(channel)
	}
	return s.subscribe(s.ctx, connection, more)
}

// confirmed takes note that Redis has carried out a SUBSCRIBE, and tells it unless that was
// told of the other connection.
func (s *Subscriptions) confirmed(by *pubsub, channel string) {
	s.mu.Lock()
	other := s.current
	if other == by {
		other = s.next
	}
	told, asked := by.asked[channel]
	if asked {
		by.asked[channel] = true
	}
	_, wanted := s.want[channel]
	tell := wanted && asked && !told && (other == nil || !other.asked[channel])
	again, recovered := s.broke, s.failure.told
	s.broke, s.failure = false, failure{}
	s.mu.Unlock()
	if recovered {
		s.listener.Recovered(s.commandName(), s.server())
	}
	if again && s.watch.Reconnected != nil {
		s.watch.Reconnected()
	}
	if tell {
		s.listener.Subscribed(channel)
	}
}

// dismissed takes note that the slots of channels are not at this server any more. master is where
// they are, "" if that was not said.
func (s *Subscriptions) dismissed(by *pubsub, channels []string, master string) {
	s.mu.Lock()
	for _, channel := range channels {
		delete(by.asked, channel)
	}
	s.mu.Unlock()
	s.home.left(channels, master)
}
