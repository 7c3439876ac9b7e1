package redisio

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// subscribeBatch bounds how many channels one SUBSCRIBE names.
	subscribeBatch = 500
	// subscribeTimeout bounds the wait for Redis to take a SUBSCRIBE.
	subscribeTimeout = 5 * time.Second
	// Reconnecting backs off from the first to the second, with jitter.
	reconnectFirst = 20 * time.Millisecond
	reconnectMost  = time.Second
)

// Listener is told what comes in over the subscriptions, by the goroutine that reads
// the connection and by the one that writes; it must not block.
type Listener interface {
	// Message: somebody published on the channel.
	Message(channel string)
	// Subscribed: from now on nothing published on the channel is missed. Told
	// again after every reconnect, since messages may have been missed before.
	Subscribed(channel string)
	// Refused: Redis will not let this client subscribe to the channels.
	Refused(channels []string, err *Error)
}

// Subscriptions keeps any number of channels subscribed over one connection,
// which it opens at the first and reopens whenever it breaks.
type Subscriptions struct {
	client   rueidis.Client
	listener Listener

	mu      sync.Mutex
	want    map[string]struct{}
	asked   map[string]bool // on the present connection; true once confirmed
	touched []string        // added or removed, and not yet looked at by the goroutine
	changed chan struct{}
	started bool
	ctx     context.Context // ends with Close
	close   context.CancelFunc
	done    chan struct{}
}

// NewSubscriptions starts nothing; the connection is opened by the first Add.
func (r *Redis) NewSubscriptions(listener Listener) *Subscriptions {
	s := &Subscriptions{
		client:   r.client,
		listener: listener,
		want:     map[string]struct{}{},
		asked:    map[string]bool{},
		changed:  make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s
}

// Add subscribes to a channel and returns at once; Subscribed is told when Redis
// has confirmed, also if the channel was subscribed before.
func (s *Subscriptions) Add(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want[channel] = struct{}{}
	s.touched = append(s.touched, channel)
	if !s.started {
		s.started = true
		go s.run()
	}
	s.wake()
}

// Remove unsubscribes from a channel and returns at once.
func (s *Subscriptions) Remove(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.want, channel)
	s.touched = append(s.touched, channel)
	s.wake()
}

func (s *Subscriptions) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Close ends the connection and waits for its goroutine.
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
	backoff := reconnectFirst
	for {
		began := time.Now()
		if s.serve() {
			return
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

// serve keeps one connection until it breaks (false) or everything is closed (true).
func (s *Subscriptions) serve() (closed bool) {
	connection, giveBack := s.client.Dedicate()
	defer giveBack()
	broken := connection.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) { s.listener.Message(m.Channel) },
		OnSubscription: func(c rueidis.PubSubSubscription) {
			if c.Kind == "subscribe" {
				s.confirmed(c.Channel)
			}
		},
	})
	s.mu.Lock()
	clear(s.asked)
	s.touched = slices.Collect(maps.Keys(s.want))
	s.mu.Unlock()
	for {
		if err := s.catchUp(connection); err != nil {
			connection.Close()
			return false
		}
		select {
		case <-s.changed:
		case <-broken:
			return false
		case <-s.ctx.Done():
			connection.Close()
			return true
		}
	}
}

func (s *Subscriptions) confirmed(channel string) {
	s.mu.Lock()
	_, asked := s.asked[channel]
	if asked {
		s.asked[channel] = true
	}
	s.mu.Unlock()
	if asked {
		s.listener.Subscribed(channel)
	}
}

// catchUp brings the connection's subscriptions in line with what is wanted.
func (s *Subscriptions) catchUp(connection rueidis.DedicatedClient) error {
	s.mu.Lock()
	var more, less, already []string
	for _, channel := range s.touched {
		_, wanted := s.want[channel]
		confirmed, asked := s.asked[channel]
		switch {
		case wanted && !asked:
			s.asked[channel] = false
			more = append(more, channel)
		case wanted && confirmed:
			already = append(already, channel)
		case !wanted && asked:
			delete(s.asked, channel)
			less = append(less, channel)
		}
	}
	s.touched = nil
	s.mu.Unlock()

	for _, channel := range already {
		s.listener.Subscribed(channel)
	}
	if len(less) > 0 {
		// rueidis panics over an error in answer to UNSUBSCRIBE, or to the PING that it sends
		// behind it (MISCONF, BUSY). Where a PING is refused, closing the connection
		// unsubscribes as well.
		if err := s.send(connection, connection.B().Ping().Build()); err != nil {
			return err
		}
	}
	for channels := range slices.Chunk(less, subscribeBatch) {
		err := s.send(connection, connection.B().Unsubscribe().Channel(channels...).Build())
		if sorted := Sort(err); sorted != nil && !sorted.Transient {
			s.listener.Refused(channels, sorted)
		}
		if err != nil {
			// After a refusal rueidis waits for a reply that does not come, and takes the next
			// one for it: the connection is of no use any more.
			return err
		}
	}
	for channels := range slices.Chunk(more, subscribeBatch) {
		if err := s.subscribe(connection, channels); err != nil {
			return err
		}
	}
	return nil
}

// subscribe returns an error if the connection is of no use any more. Redis refuses
// all channels of a SUBSCRIBE because of one, so they are halved until that is found:
// its refusal is told to the listener and leaves the others alone.
func (s *Subscriptions) subscribe(connection rueidis.DedicatedClient, channels []string) error {
	err := s.send(connection, connection.B().Subscribe().Channel(channels...).Build())
	if _, refused := rueidis.IsRedisErr(err); !refused || Sort(err).Transient {
		return err
	}
	if half := len(channels) / 2; half > 0 {
		if err := s.subscribe(connection, channels[:half]); err != nil {
			return err
		}
		return s.subscribe(connection, channels[half:])
	}
	s.mu.Lock()
	delete(s.asked, channels[0]) // so that the next Add asks again
	s.mu.Unlock()
	s.listener.Refused(channels, Sort(err))
	return nil
}

func (s *Subscriptions) send(connection rueidis.DedicatedClient, command rueidis.Completed) error {
	ctx, cancel := context.WithTimeout(s.ctx, subscribeTimeout)
	defer cancel()
	return connection.Do(ctx, command).Error()
}
