// Package pubsub keeps pub/sub channels subscribed, even while connections break, masters change and slots move.
package pubsub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/hello"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const (
	// subscribeBatch bounds how many channels one SUBSCRIBE names.
	subscribeBatch = 500
	// subscribeTimeout bounds the wait for the reply to a SUBSCRIBE.
	subscribeTimeout = 5 * time.Second
	// roomTimeout is the time after which the client's pool is considered full. A dial fails
	// before that (after 5 s, unless the client has another timeout).
	roomTimeout = 8 * time.Second
)

// conn is one connection for subscriptions.
type conn struct {
	// server is the address of the server in a cluster, otherwise "".
	server  string
	client  rueidis.DedicatedClient
	release func()
	broken  <-chan error
	// asked are the channels that the connection subscribes to; true once Redis has confirmed.
	// The Subscriptions' mutex guards it.
	asked map[string]bool
}

// dedicate takes a connection from a client. In a cluster the connection leads to server if the client knows it,
// otherwise to any server, and to avoid only if there is no other server.
func dedicate(client rueidis.Client, server, avoid string) *conn {
	if client.Mode() != rueidis.ClientModeCluster {
		return newConn(client, "")
	}
	nodes := client.Nodes()
	if node := nodes[server]; node != nil {
		return newConn(node, server)
	}
	for server, node := range nodes {
		if server != avoid || len(nodes) == 1 {
			return newConn(node, server)
		}
	}
	return nil
}

func newConn(client rueidis.Client, server string) *conn {
	c := &conn{server: server, asked: map[string]bool{}}
	c.client, c.release = client.Dedicate()
	return c
}

// has reports whether the connection is subscribed to the channel, or is about to be.
func (c *conn) has(channel string) bool {
	if c == nil {
		return false
	}
	_, asked := c.asked[channel]
	return asked
}

// confirmed reports whether Redis has confirmed the connection's subscription to the channel.
func (c *conn) confirmed(channel string) bool { return c != nil && c.asked[channel] }

// end closes the connection after the messages that have arrived are read. rueidis would
// unsubscribe a connection that is returned to the pool open.
func (c *conn) end() {
	c.client.Close()
	c.release()
}

var errNoServer = errors.New("the client does not know the server, or no longer knows it")

// open takes a connection to a server from the client, as dedicate does, unless ctx ends first. The client may block
// for a dial, or until its pool has room.
func (s *Subscriptions) open(ctx context.Context, server, avoid string) (*conn, error) {
	opened := make(chan *conn)
	go func() {
		c := s.dedicate(server, avoid)
		select {
		case opened <- c:
		case <-ctx.Done():
			if c != nil {
				c.end()
			}
		}
	}()
	select {
	case c := <-opened:
		if c == nil {
			return nil, errNoServer
		}
		c.broken = c.client.SetPubSubHooks(rueidis.PubSubHooks{
			OnMessage: func(m rueidis.PubSubMessage) { s.listener.Message(m.Channel, m.Message) },
			OnSubscription: func(m rueidis.PubSubSubscription) {
				switch m.Kind {
				case "subscribe", "ssubscribe":
					s.noteConfirmed(c, m.Channel)
				case "sunsubscribe": // sent by Redis when the slot has moved to another server
					s.noteSlotsMoved(c, []string{m.Channel}, "")
				}
			},
		})
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// replacement is the result of preparing a connection.
type replacement struct {
	// connection can replace the current connection; nil if there is none.
	connection *conn
	// pause is the time in which unused channels are not a reason for another replacement.
	pause time.Duration
	// stale reports that the current connection was stale.
	stale bool
	// noRoom reports that the current connection must be closed first.
	noRoom bool
}

// prepare opens a connection and subscribes it to the wanted channels of the current connection, unless ctx ends first.
// It sends the result to a channel, unless gone is closed first.
func (s *Subscriptions) prepare(ctx context.Context, current *conn, stale bool, to chan<- replacement, gone <-chan struct{}) {
	began := time.Now()
	inTime, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	server := current.server
	if stale {
		server = "" // the server may be the wrong one
	}
	next, err := s.open(inTime, server, "")
	noRoom := err != nil
	if err == nil {
		err = s.subscribe(ctx, next, s.begin(current, next))
	}
	r := replacement{connection: next, pause: min(replacePace*time.Since(began), maxReplacePause)}
	if err != nil {
		s.abandon(next)
		r = replacement{pause: max(r.pause, maxReconnectPause), stale: stale, noRoom: noRoom}
		if ctx.Err() != nil {
			r = replacement{} // serve has cancelled the replacement
		}
	}
	select {
	case to <- r:
	case <-gone:
		s.abandon(r.connection)
	}
}

// begin makes a connection the next connection, and returns the channels for it. Channels that were refused on the
// current connection are left out, since they would be refused again.
func (s *Subscriptions) begin(current, next *conn) (channels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != current {
		return nil // current has ended
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

// abandon closes a connection that was prepared.
func (s *Subscriptions) abandon(next *conn) {
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

// adopt makes the next connection the current connection. catchUp subscribes it to channels that were added meanwhile.
func (s *Subscriptions) adopt(next *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current
	s.current, s.next = next, nil
	clear(s.unused)
	for channel := range next.asked {
		if old.asked[channel] {
			next.asked[channel] = true // the listener was notified
		}
		if _, wanted := s.want[channel]; !wanted {
			s.markUnused(channel)
		}
	}
	for channel := range old.asked {
		if _, wanted := s.want[channel]; wanted && !next.has(channel) {
			s.added = append(s.added, channel)
		}
	}
}

// retire closes a connection that was replaced. If the connection no longer replies, it may have ended before the new
// connection was subscribed, so messages may have been missed: all channels are reported as subscribed again.
func (s *Subscriptions) retire(old *conn) {
	if !s.replies(old) && s.ctx.Err() == nil {
		s.reconnected()
		s.mu.Lock()
		s.added = s.wanted()
		s.wake()
		s.mu.Unlock()
	}
	old.end()
}

// replies reports whether a connection replies to another SUBSCRIBE to one of its channels, even with an error. All
// earlier messages are read by then. A PING would not do: in RESP2, rueidis sends it over another connection.
func (s *Subscriptions) replies(old *conn) bool {
	s.mu.Lock()
	var one []string
	for channel, confirmed := range old.asked {
		if confirmed {
			one = []string{channel}
			break
		}
	}
	s.mu.Unlock()
	if one == nil {
		return true // no message was to come
	}
	inTime, cancel := context.WithTimeout(s.ctx, subscribeTimeout)
	defer cancel()
	return old.client.Do(inTime, s.command(old, one)).NonRedisError() == nil
}

// subscribe subscribes a connection to channels. It returns an error if the connection can no longer be used. A replica
// confirms shard channels as its master does, but the scripts do not count its subscribers; so the server is asked
// afterwards for its role. A master that becomes a replica later unsubscribes its subscribers.
func (s *Subscriptions) subscribe(ctx context.Context, connection *conn, channels []string) error {
	for batch := range slices.Chunk(channels, subscribeBatch) {
		groups, commands := [][]string{batch}, rueidis.Commands{}
		if s.shard != nil {
			groups = bySlot(batch)
		}
		for _, group := range groups {
			commands = append(commands, s.command(connection, group))
		}
		inTime, cancel := context.WithTimeout(ctx, subscribeTimeout)
		results, role := connection.client.DoMulti(inTime, commands...), ""
		if s.shard != nil {
			role = hello.Field(inTime, connection.client, "role")
		}
		cancel()
		for i, result := range results {
			if err := s.handleReply(ctx, connection, groups[i], result.Error()); err != nil {
				return err
			}
		}
		if role == "replica" {
			s.noteSlotsMoved(connection, batch, "")
		}
	}
	return nil
}

// command returns the command that subscribes to channels; shard channels must be in one slot.
func (s *Subscriptions) command(connection *conn, channels []string) rueidis.Completed {
	if s.shard != nil {
		return connection.client.B().Ssubscribe().Channel(channels...).Build()
	}
	return connection.client.B().Subscribe().Channel(channels...).Build()
}

// handleReply handles the reply to one SUBSCRIBE. Redis refuses all of its channels because of one channel, so the
// channels are halved until that channel is found; only its refusal is reported to the listener.
func (s *Subscriptions) handleReply(ctx context.Context, connection *conn, channels []string, err error) error {
	refusal, refused := rueidis.IsRedisErr(err)
	if refused && s.shard != nil {
		if master, moved := refusal.IsMoved(); moved {
			s.noteSlotsMoved(connection, channels, master)
			return nil
		}
	}
	if !refused || redisio.Classify(err).Transient {
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
	s.listener.Refused(channels, redisio.Classify(err))
	return nil
}
