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

// listenFunc is a function that is called for each message.
type listenFunc struct{ notify func() }

func (f *listenFunc) post(any) { f.notify() }

// Listen calls notify for each message on the channels of a lock's release, and each time such a channel is subscribed,
// until stop is called. notify must not block.
func (r *Runtime) Listen(kind messages.Kind, name string, members *request.Members, notify func()) (stop func()) {
	list := []request.Member{{System: r, Kind: kind, Name: name}}
	if members != nil {
		list = members.Sorted
	}
	f, all := &listenFunc{notify}, backend.Releases(memberSpecsOf(list))
	for _, channel := range all {
		systemOf(channel).subscriber.tell(&subscribe{to: f, channel: channel})
	}
	return func() {
		for _, channel := range all {
			systemOf(channel).subscriber.tell(&unsubscribe{to: f, channel: channel})
		}
	}
}

// subscriber forwards the messages on the channels of locks to the lock actors that wait for them. It forwards a
// transfer on the turn channel to the lock actor whose turn it is, and a question to the lock actor that is asked for
// its lock. A system has one subscriber.
//
// After a crash it is resumed, with its state.
type subscriber struct {
	rt            *Runtime
	pid           *actor.PID
	subscriptions subscriptions
	// turns is the turn channel. It comes first in the subscriptions. With sharded pub/sub it is the
	// prefix of the turn channels of all locks.
	turns   string
	sharded bool

	// listeners contains the subscribe of each listener, by channel. A channel is subscribed while it has listeners.
	// Only the mailbox of the subscriber touches them, even after a crash.
	listeners map[string]map[listener]*subscribe
}

// subscriptions keep channels subscribed: a pubsub.Subscriptions, or a pubsub.Shards.
type subscriptions interface {
	Add(channels ...string)
	Remove(channels ...string)
	Confirmed(channel string) bool
	Close()
}

func newSubscriber(rt *Runtime) *subscriber {
	s := &subscriber{rt: rt, turns: keyspace.TurnChannel(rt.id), sharded: rt.redis.Sharded(), listeners: map[string]map[listener]*subscribe{}}
	if s.sharded {
		s.subscriptions = rt.redis.NewShards(s)
	} else {
		s.subscriptions = rt.redis.NewSubscriptions(s, s.turns)
	}
	return s
}

// of returns the channels to which a waiter on a channel subscribes. That channel is the last one: a client that
// subscribes to it alone counts as foreign.
func (s *subscriber) of(channel backend.Channel) []string {
	switch {
	case channel.Waiters == "":
		return []string{channel.Name}
	case s.sharded:
		return []string{keyspace.ShardTurnChannel(s.rt.id, channel.Waiters), channel.Waiters, channel.Name}
	}
	return []string{channel.Waiters, channel.Name}
}

// tell sends the subscriber a message.
func (s *subscriber) tell(m any) { s.rt.Deliver(s.pid, m) }

// Receive implements actor.Actor.
func (s *subscriber) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *published:
		if s.isTurn(m.channel) {
			s.transferred(m.payload)
			return
		}
		for to, asked := range s.listeners[m.channel] {
			to.post(unlocked{to: to, channel: asked.channel})
		}
	case *confirmed:
		for to, asked := range s.listeners[m.channel] {
			to.post(listening{to: to, channel: asked.channel, term: asked.term})
		}
	case *subscribe:
		s.add(m)
		s.subscriptions.Add(s.of(m.channel)...)
	case *unsubscribe:
		s.end(m)
	}
}

// transferred brings a transfer or a question to the lock actor, or wakes the actor of a semaphore. If the lock actor
// has left, the short TTL of the transfer ends it.
func (s *subscriber) transferred(payload string) {
	key, transfer, ok := kinds.ParseTransfer(payload)
	if !ok {
		return // no waiter has a turn
	}
	name, ours := strings.CutPrefix(key, s.rt.cfg.KeyPrefix)
	if !ours {
		return
	}
	for _, made := range [...]request.Composition{request.OneKey, request.SemaphoreKey} {
		if to := s.rt.locks.Get(kinds.Key{Name: name, Composition: made}); to != nil {
			to.post(&transferred{to, transfer})
		}
	}
}

func (s *subscriber) end(m *unsubscribe) {
	if s.drop(m) {
		s.subscriptions.Remove(s.of(m.channel)...)
	}
}

func (s *subscriber) add(m *subscribe) {
	all := s.listeners[m.channel.Name]
	if all == nil {
		all = map[listener]*subscribe{}
		s.listeners[m.channel.Name] = all
		s.rt.observer.Subscriptions(1)
	}
	all[m.to] = m
}

// drop removes a listener, and reports whether it was the last listener of its channel.
func (s *subscriber) drop(m *unsubscribe) (last bool) {
	all := s.listeners[m.channel.Name]
	if _, listened := all[m.to]; !listened {
		return false
	}
	delete(all, m.to)
	if len(all) > 0 {
		return false
	}
	delete(s.listeners, m.channel.Name)
	s.rt.observer.Subscriptions(-1)
	return true
}

// receivesTransfers reports whether Redis has confirmed the subscription to the turn channel.
func (s *subscriber) receivesTransfers() bool { return s.subscriptions.Confirmed(s.turns) }

// Begins implements delivery.CrashHandler.
func (s *subscriber) Begins() {}

// Crashed implements delivery.CrashHandler. Only an unsubscribe must not be lost, since the lock actors subscribe
// again.
func (s *subscriber) Crashed(m any, _ *actor.PID, reason any) {
	s.rt.host.Error("the subscriber crashed", "panic", reason)
	if m, ok := m.(*unsubscribe); ok {
		s.end(m)
	}
}

// Message implements pubsub.Listener.
func (s *subscriber) Message(channel, payload string) {
	s.tell(&published{channel: channel, payload: payload})
}

// Subscribed implements pubsub.Listener.
func (s *subscriber) Subscribed(channel string) {
	s.rt.observer.Subscribed(s.isTurn(channel), channel)
	if s.isTurn(channel) {
		return // waiters are notified of the lock's own channel, which is confirmed later
	}
	s.tell(&confirmed{channel: channel})
}

// Refused implements pubsub.Listener.
func (s *subscriber) Refused(names []string, err *redisclient.Error) {
	s.rt.observer.SubscriptionRefused(slices.ContainsFunc(names, s.isTurn), names, err)
}

func (s *subscriber) isTurn(channel string) bool { return strings.HasPrefix(channel, s.turns) }

// Failing implements pubsub.Listener.
func (s *subscriber) Failing(command, server string, err *redisclient.Error) {
	s.rt.observer.SubscribingFails(command, server, s.rt.cfg.Poll, err)
}

// Recovered implements pubsub.Listener.
func (s *subscriber) Recovered(command, server string) {
	s.rt.observer.SubscribingWorks(command, server)
}

func (s *subscriber) close() { s.subscriptions.Close() }
