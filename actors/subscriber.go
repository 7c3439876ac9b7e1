package actors

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// listener hears what is published on a channel: a lock actor, or a listenFunc.
type listener interface{ hear(m any) }

func (s *lockState) hear(m any) { s.rt.Deliver(s.pid, m) }

// listenFunc is a function that is called for each message.
type listenFunc struct{ heard func() }

func (f *listenFunc) hear(any) { f.heard() }

// Listen calls heard for each message on the channels of a lock's release, and each time that one is subscribed, until stop
// is called. heard must not block.
func (r *Runtime) Listen(kind messages.Kind, name string, members *request.Members, heard func()) (stop func()) {
	list := []request.Member{{System: r, Kind: kind, Name: name}}
	if members != nil {
		list = members.Sorted
	}
	f, all := &listenFunc{heard}, backend.Releases(partsOf(list))
	for _, channel := range all {
		systemOf(channel).Deliver(systemOf(channel).subscriber, &subscribe{to: f, channel: channel})
	}
	return func() {
		for _, channel := range all {
			systemOf(channel).Deliver(systemOf(channel).subscriber, &unsubscribe{to: f, channel: channel})
		}
	}
}

// subscriber forwards the messages on the channels of locks to the lock actors that wait for
// them, and each transfer on the turn channel to the lock actor whose turn it is. A system has
// one subscriber.
type subscriber struct{ *channels }

// channels is what the subscriber knows; a crash of the subscriber does not touch it.
type channels struct {
	rt            *Runtime
	subscriptions keeper
	// turns is the turn channel. It comes first in the subscriptions. With sharded pub/sub it is the
	// prefix of the turn channels of all locks.
	turns   string
	sharded bool

	// listeners has the subscribe of each listener, by channel. A channel is subscribed
	// while it has listeners. Only the mailbox of the subscriber touches them, also after a crash.
	listeners map[string]map[listener]*subscribe
}

// keeper keeps channels subscribed: a pubsub.Subscriptions, or a pubsub.Shards.
type keeper interface {
	Add(channels ...string)
	Remove(channels ...string)
	Confirmed(channel string) bool
	Close()
}

func newChannels(rt *Runtime) *channels {
	c := &channels{rt: rt, turns: keyspace.TurnChannel(rt.id), sharded: rt.redis.Sharded(), listeners: map[string]map[listener]*subscribe{}}
	if c.sharded {
		c.subscriptions = rt.redis.NewShards(c)
	} else {
		c.subscriptions = rt.redis.NewSubscriptions(c, c.turns)
	}
	return c
}

// of returns the channels to subscribe to for a waiter on channel e. The name of e comes last: a waiter that is
// subscribed to it alone counts as a foreign client.
func (c *channels) of(e backend.Channel) []string {
	switch {
	case e.Waiters == "":
		return []string{e.Name}
	case c.sharded:
		return []string{keyspace.ShardTurnChannel(c.rt.id, e.Waiters), e.Waiters, e.Name}
	}
	return []string{e.Waiters, e.Name}
}

func (s *subscriber) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *published:
		if m.channel == s.turns || s.sharded && strings.HasPrefix(m.channel, s.turns) {
			s.transferred(m.payload)
			return
		}
		for to, asked := range s.listeners[m.channel] {
			to.hear(unlocked{channel: asked.channel})
		}
	case *confirmed:
		for to, asked := range s.listeners[m.channel] {
			to.hear(listening{channel: asked.channel, term: asked.term})
		}
	case *subscribe:
		s.add(m)
		s.subscriptions.Add(s.of(m.channel)...)
	case *unsubscribe:
		s.end(m)
	}
}

// transferred brings a transfer to the lock actor. A lock whose actor has left since it added its
// entry to the wait queue is not released: its kind is not known here, and the TTL of a transfer is
// short.
func (c *channels) transferred(payload string) {
	key, transfer, ok := kinds.ParseTransfer(payload)
	if !ok {
		return // no waiter has a turn
	}
	name, ours := strings.CutPrefix(key, c.rt.cfg.KeyPrefix)
	if !ours {
		return
	}
	if state := c.rt.table.get(lockKey{name: name}); state != nil {
		c.rt.Deliver(state.pid, &transferred{transfer})
	}
}

func (c *channels) end(m *unsubscribe) {
	if c.drop(m) {
		c.subscriptions.Remove(c.of(m.channel)...)
	}
}

func (c *channels) add(m *subscribe) {
	all := c.listeners[m.channel.Name]
	if all == nil {
		all = map[listener]*subscribe{}
		c.listeners[m.channel.Name] = all
		c.rt.observer.Subscriptions(1)
	}
	all[m.to] = m
}

// drop reports whether it was the last on its channel.
func (c *channels) drop(m *unsubscribe) (last bool) {
	all := c.listeners[m.channel.Name]
	if _, listened := all[m.to]; !listened {
		return false
	}
	delete(all, m.to)
	if len(all) > 0 {
		return false
	}
	delete(c.listeners, m.channel.Name)
	c.rt.observer.Subscriptions(-1)
	return true
}

// hearsTransfers reports whether Redis has confirmed the subscription to the turn channel.
func (c *channels) hearsTransfers() bool { return c.subscriptions.Confirmed(c.turns) }

// Begins implements delivery.CrashHandler.
func (c *channels) Begins() {}

// Crashed implements delivery.CrashHandler. It carries out what a crash of the subscriber has swallowed, before its
// next message. A lost wake-up costs a lock no more than its poll bound, and so does a lost transfer,
// whose term finds out with its next try that it has the lock; a lost subscribe
// is asked for again; but a channel whose unsubscribe was lost would stay for ever.
func (c *channels) Crashed(m any, _ *actor.PID, reason any) {
	c.rt.host.Error("the subscriber crashed", "panic", reason)
	if swallowed, ok := m.(*unsubscribe); ok {
		c.end(swallowed)
	}
}

// Message implements pubsub.Listener.
func (c *channels) Message(channel, payload string) {
	c.rt.Deliver(c.rt.subscriber, &published{channel: channel, payload: payload})
}

// Subscribed implements pubsub.Listener.
func (c *channels) Subscribed(channel string) {
	c.rt.observer.Subscribed(c.isTurn(channel), channel)
	if c.isTurn(channel) {
		return // waiters are notified of the lock's own channel, which is confirmed later
	}
	c.rt.Deliver(c.rt.subscriber, &confirmed{channel: channel})
}

// Refused implements pubsub.Listener.
func (c *channels) Refused(names []string, err *redisclient.Error) {
	c.rt.observer.SubscriptionRefused(slices.ContainsFunc(names, c.isTurn), names, err)
}

func (c *channels) isTurn(channel string) bool { return strings.HasPrefix(channel, c.turns) }

// Failing implements pubsub.Listener.
func (c *channels) Failing(command, server string, err *redisclient.Error) {
	c.rt.observer.SubscribingFails(command, server, c.rt.cfg.Poll, err)
}

// Recovered implements pubsub.Listener.
func (c *channels) Recovered(command, server string) {
	c.rt.observer.SubscribingWorks(command, server)
}

func (c *channels) close() { c.subscriptions.Close() }
