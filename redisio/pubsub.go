package redisio

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

const (
	// subscribeBatch bounds how many channels one SUBSCRIBE names.
	subscribeBatch = 500
	// subscribeTimeout bounds the wait for Redis to take a SUBSCRIBE.
	subscribeTimeout = 5 * time.Second
	// roomTimeout is when the client's pool is thought to have no room for a second
	// connection: a dial ends before, with an error (after 5 s, unless the client has
	// another timeout).
	roomTimeout = 8 * time.Second
)

// pubsub is one connection for subscriptions.
type pubsub struct {
	client   rueidis.DedicatedClient
	giveBack func()
	broken   <-chan error
	// asked are the channels that it was told to subscribe to; true once that is
	// confirmed. The Subscriptions' mutex guards it.
	asked map[string]bool
}

// has reports whether the connection is subscribed to a channel, or about to be.
func (p *pubsub) has(channel string) bool {
	if p == nil {
		return false
	}
	_, asked := p.asked[channel]
	return asked
}

// confirmed reports whether Redis has confirmed a subscription of the connection's.
func (p *pubsub) confirmed(channel string) bool { return p != nil && p.asked[channel] }

// end closes the connection after reading what has come before. It must not go back to
// the client's pool open: rueidis would unsubscribe it there.
func (p *pubsub) end() {
	p.client.Close()
	p.giveBack()
}

var errNoServer = errors.New("the client does not know the server, or knows it no more")

// open takes a connection of the client's, for as long as ctx lasts. The client itself
// takes its time: what a dial takes, or until its pool has room.
func (s *Subscriptions) open(ctx context.Context) (*pubsub, error) {
	opened := make(chan *pubsub)
	go func() {
		p, ok := &pubsub{asked: map[string]bool{}}, false
		if p.client, p.giveBack, ok = s.dedicate(); !ok {
			p = nil
		}
		select {
		case opened <- p:
		case <-ctx.Done():
			if ok {
				p.end()
			}
		}
	}()
	select {
	case p := <-opened:
		if p == nil {
			return nil, errNoServer
		}
		p.broken = p.client.SetPubSubHooks(rueidis.PubSubHooks{
			OnMessage: func(m rueidis.PubSubMessage) { s.listener.Message(m.Channel, m.Message) },
			OnSubscription: func(c rueidis.PubSubSubscription) {
				switch c.Kind {
				case "subscribe", "ssubscribe":
					s.confirmed(p, c.Channel)
				case "sunsubscribe": // unasked: the slot has left the server
					s.dismissed(p, []string{c.Channel}, "")
				}
			},
		})
		return p, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// replacement is a connection that can replace the current one, or nil, and for how long none is to be prepared
// because of unused channels. stale says that the current one was stale, and noRoom that it has to go
// first.
type replacement struct {
	connection    *pubsub
	pause         time.Duration
	stale, noRoom bool
}

// prepare opens a connection and subscribes it to what is wanted of the current one, unless ctx ends before.
// It gives the result to a channel, until nobody is there to take it.
func (s *Subscriptions) prepare(ctx context.Context, current *pubsub, stale bool, to chan<- replacement, gone <-chan struct{}) {
	began := time.Now()
	inTime, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	next, err := s.open(inTime)
	noRoom := err != nil
	if err == nil {
		err = s.subscribe(ctx, next, s.begin(current, next))
	}
	r := replacement{connection: next, pause: min(replacePace*time.Since(began), replaceRest)}
	if err != nil {
		s.abandon(next)
		r = replacement{pause: max(r.pause, reconnectMost), stale: stale, noRoom: noRoom}
		if ctx.Err() != nil {
			r = replacement{} // it was given up
		}
	}
	select {
	case to <- r:
	case <-gone:
		s.abandon(r.connection)
	}
}

// begin makes a connection the next one, and says what it is to be subscribed to. What was
// refused before is not among that: it would be refused again.
func (s *Subscriptions) begin(current, next *pubsub) (channels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != current {
		return nil // which has ended
	}
	s.next = next
	for _, channel := range s.wanted() {
		if current.has(channel) {
			next.asked[channel] = false
			channels = append(channels, channel)
		}
	}
	return channels
}

// abandon gives up what was prepared.
func (s *Subscriptions) abandon(next *pubsub) {
	if next == nil {
		return
	}
	s.mu.Lock()
	if s.next == next {
		s.next = nil
	}
	s.mu.Unlock()
	s.others.Go(next.end)
}

// adopt makes the next connection the current one. What was added meanwhile is left to
// catchUp.
func (s *Subscriptions) adopt(next *pubsub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current
	s.current, s.next = next, nil
	clear(s.lingering)
	for channel := range next.asked {
		if old.asked[channel] {
			next.asked[channel] = true // as was told
		}
		if _, wanted := s.want[channel]; !wanted {
			s.lingers(channel)
		}
	}
	for channel := range old.asked {
		if _, wanted := s.want[channel]; wanted && !next.has(channel) {
			s.touched = append(s.touched, channel)
		}
	}
}

// subscribe returns an error if the connection is of no use any more. A replica confirms shard channels
// as its master does, but the scripts do not count who listens there; so it is asked afterwards what it
// is. A master that becomes a replica later dismisses its subscribers.
func (s *Subscriptions) subscribe(ctx context.Context, connection *pubsub, channels []string) error {
	for batch := range slices.Chunk(channels, subscribeBatch) {
		groups, commands := [][]string{batch}, rueidis.Commands{}
		if s.home != nil {
			groups = bySlot(batch)
		}
		for _, group := range groups {
			commands = append(commands, s.command(connection, group))
		}
		inTime, cancel := context.WithTimeout(ctx, subscribeTimeout)
		results, role := connection.client.DoMulti(inTime, commands...), ""
		if s.home != nil {
			role = hello(inTime, connection.client, "role")
		}
		cancel()
		for i, result := range results {
			if err := s.subscribed(ctx, connection, groups[i], result.Error()); err != nil {
				return err
			}
		}
		if role == "replica" {
			s.dismissed(connection, batch, "")
		}
	}
	return nil
}

// command subscribes to channels; those of shards are in one slot.
func (s *Subscriptions) command(connection *pubsub, channels []string) rueidis.Completed {
	if s.home != nil {
		return connection.client.B().Ssubscribe().Channel(channels...).Build()
	}
	return connection.client.B().Subscribe().Channel(channels...).Build()
}

// subscribed takes the reply to one SUBSCRIBE. Redis refuses all of its channels because of one, so
// they are halved until that is found: its refusal is told to the listener and leaves the
// others alone.
func (s *Subscriptions) subscribed(ctx context.Context, connection *pubsub, channels []string, err error) error {
	refusal, refused := rueidis.IsRedisErr(err)
	if refused && s.home != nil {
		if master, moved := refusal.IsMoved(); moved {
			s.dismissed(connection, channels, master)
			return nil
		}
	}
	if !refused || Sort(err).Transient {
		return err
	}
	if half := len(channels) / 2; half > 0 {
		if err := s.subscribe(ctx, connection, channels[:half]); err != nil {
			return err
		}
		return s.subscribe(ctx, connection, channels[half:])
	}
	s.mu.Lock()
	delete(connection.asked, channels[0]) // so that the next Add asks again
	s.mu.Unlock()
	s.listener.Refused(channels, Sort(err))
	return nil
}
