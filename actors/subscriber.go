package actors

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// subscriber forwards what is published on the locks' channels to the lock actors that wait
// for it, and what is published on the turn channel to those whose turn it is. There is one in
// a system, with one connection.
type subscriber struct{ *channels }

// channels is what the subscriber knows; a crash of the subscriber does not touch it.
type channels struct {
	rt            *Runtime
	subscriptions *redisio.Subscriptions
	// turns is the turn channel. It comes first in the subscriptions.
	turns string

	mu sync.Mutex // guards what follows
	// listeners are counted references: a channel is subscribed while it has any. The
	// number is the term that the listener named.
	listeners map[string]map[*lockState]uint64
}

func newChannels(rt *Runtime) *channels {
	c := &channels{rt: rt, turns: redisio.TurnChannel(rt.id), listeners: map[string]map[*lockState]uint64{}}
	c.subscriptions = rt.redis.NewSubscriptions(c, c.turns)
	return c
}

func (s *subscriber) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *published:
		if m.channel == s.turns {
			s.transferred(m.payload)
			return
		}
		for state := range s.who(m.channel) {
			state.rt.deliver(state.pid, unlocked{channel: backend.Channel{Server: s.rt.server, Name: m.channel}})
		}
	case *confirmed:
		for state, term := range s.who(m.channel) {
			state.rt.deliver(state.pid, listening{channel: backend.Channel{Server: s.rt.server, Name: m.channel}, term: term})
		}
	case *subscribe:
		s.add(m)
		s.subscriptions.Add(m.channel)
	case *unsubscribe:
		s.end(m)
	}
}

// transferred brings a transfer to the lock actor. A lock whose actor has left since it took its
// place in the line is not released: its kind is not known here, and the TTL of a transfer is
// short.
func (c *channels) transferred(payload string) {
	key, transfer, ok := protocol.ParseTurn(payload)
	if !ok {
		return // it is nobody's turn
	}
	name, ours := strings.CutPrefix(key, c.rt.cfg.KeyPrefix)
	if !ours {
		return
	}
	if state := c.rt.table.get(lockKey{name: name}); state != nil {
		c.rt.deliver(state.pid, &transferred{transfer})
	}
}

func (c *channels) end(m *unsubscribe) {
	if c.drop(m) {
		c.subscriptions.Remove(m.channel)
	}
}

// who listens on a channel.
func (c *channels) who(channel string) map[*lockState]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.listeners[channel])
}

func (c *channels) add(m *subscribe) {
	c.mu.Lock()
	defer c.mu.Unlock()
	states := c.listeners[m.channel]
	if states == nil {
		states = map[*lockState]uint64{}
		c.listeners[m.channel] = states
	}
	states[m.state] = m.term
}

// drop reports whether it was the last on its channel.
func (c *channels) drop(m *unsubscribe) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	states := c.listeners[m.channel]
	if _, listened := states[m.state]; !listened {
		return false
	}
	delete(states, m.state)
	if len(states) > 0 {
		return false
	}
	delete(c.listeners, m.channel)
	return true
}

// shared reports whether others in this system listen on a channel besides that one.
func (c *channels) shared(but *lockState, channel string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	states := c.listeners[channel]
	if _, listens := states[but]; listens {
		return len(states) > 1
	}
	return len(states) > 0
}

// subscribed reports whether Redis may count this system among a channel's subscribers.
func (c *channels) subscribed(channel string) bool { return c.subscriptions.Subscribed(channel) }

// hearsTransfers reports whether Redis has confirmed the subscription to the turn channel.
func (c *channels) hearsTransfers() bool { return c.subscriptions.Confirmed(c.turns) }

// crashed carries out what a crash of the subscriber has swallowed, before its next
// message. A lost wake-up costs a lock no more than its poll bound, and so does a lost transfer,
// whose term finds out with its next try that it has the lock; a lost subscribe
// is asked for again; but a channel whose unsubscribe was lost would stay for ever.
func (c *channels) crashed(m any, _ *actor.PID, reason any) {
	c.rt.host.error("the subscriber crashed", "panic", reason)
	if swallowed, ok := m.(*unsubscribe); ok {
		c.end(swallowed)
	}
}

// Message implements redisio.Listener.
func (c *channels) Message(channel, payload string) {
	c.rt.deliver(c.rt.subscriber, &published{channel: channel, payload: payload})
}

// Subscribed implements redisio.Listener.
func (c *channels) Subscribed(channel string) {
	if channel == c.turns {
		return // who waits for it hears of another channel, which comes later
	}
	c.rt.deliver(c.rt.subscriber, &confirmed{channel: channel})
}

// Refused implements redisio.Listener.
func (c *channels) Refused(names []string, err *redisio.Error) {
	consequence := "waiters have to poll"
	if slices.Contains(names, c.turns) {
		consequence = "no lock is transferred to this process"
	}
	c.rt.host.warn("Redis refuses a subscription: "+consequence, "channels", names, "error", err)
}

func (c *channels) close() { c.subscriptions.Close() }
