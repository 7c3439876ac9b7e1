package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// subscriber forwards what is published on the locks' channels to the lock actors
// that wait for it. There is one in a system, with one connection.
type subscriber struct{ *channels }

// channels is what the subscriber knows; a crash of the subscriber does not touch it.
type channels struct {
	rt            *Runtime
	subscriptions *redisio.Subscriptions
	// listeners are counted references: a channel is subscribed while it has any.
	listeners map[string]map[*cell]struct{}
}

func newChannels(rt *Runtime) *channels {
	c := &channels{rt: rt, listeners: map[string]map[*cell]struct{}{}}
	c.subscriptions = rt.redis.NewSubscriptions(c)
	return c
}

func (s *subscriber) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *published:
		for c := range s.listeners[m.channel] {
			ctx.Send(c.pid, unlocked{})
		}
	case *confirmed:
		for c := range s.listeners[m.channel] {
			ctx.Send(c.pid, listening{})
		}
	case *subscribe:
		cells := s.listeners[m.cell.channel]
		if cells == nil {
			cells = map[*cell]struct{}{}
			s.listeners[m.cell.channel] = cells
		}
		cells[m.cell] = struct{}{}
		s.subscriptions.Add(m.cell.channel)
	case *unsubscribe:
		cells := s.listeners[m.cell.channel]
		if _, listened := cells[m.cell]; !listened {
			return
		}
		delete(cells, m.cell)
		if len(cells) == 0 {
			delete(s.listeners, m.cell.channel)
			s.subscriptions.Remove(m.cell.channel)
		}
	}
}

// crashed looks after the message that a crash of the subscriber has swallowed. A
// lost wake-up costs a lock no more than its poll bound, and a lost subscribe is
// asked for again; but a lost unsubscribe would stay for ever.
func (c *channels) crashed(m any) {
	if again, ok := m.(*unsubscribe); ok && !again.repeated {
		again.repeated = true
		c.rt.root.Send(c.rt.subscriber, again)
	}
}

// Message implements redisio.Listener.
func (c *channels) Message(channel string) {
	c.rt.deliver(c.rt.subscriber, &published{channel: channel})
}

// Subscribed implements redisio.Listener.
func (c *channels) Subscribed(channel string) {
	c.rt.deliver(c.rt.subscriber, &confirmed{channel: channel})
}

// Refused implements redisio.Listener.
func (c *channels) Refused(names []string, err *redisio.Error) {
	c.rt.cfg.Logger.Warn("Redis refuses a subscription: waiters have to poll", "channels", names, "error", err)
}

func (c *channels) close() { c.subscriptions.Close() }
