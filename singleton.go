package lockkeeper

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Singleton is an actor that has at most one instance in all processes that use its name, and proxies that
// forward messages to it, wherever it is. A Singleton is only a name with methods: make as many as needed.
//
//	importer := locks.Singleton("importer")
//	candidate := system.Root.Spawn(importer.Props(child)) // in each process that may run it
//	proxy := system.Root.Spawn(importer.Proxy())          // in each process that sends to it
//	system.Root.Send(proxy, message)
//
// [docs/actors.md] has the guarantees with their times, and what each failure costs.
//
// [docs/actors.md]: https://github.com/lockkeeper-go/lockkeeper/blob/main/docs/actors.md
type Singleton struct {
	system *System
	lock   *Lock
}

// Singleton returns the singleton of that name. Its candidates hold the fenced lock of the name; do not use that lock
// for anything else. If candidates and proxies are on several nodes, start proto.actor's remote before New or Open.
func (s *System) Singleton(name string) *Singleton {
	return &Singleton{system: s, lock: s.FencedLock(name)}
}

// Name returns the name of the singleton, without the key prefix.
func (s *Singleton) Name() string {
	if s == nil {
		return ""
	}
	return s.lock.Name()
}

// Props returns the props of a candidate. One of the candidates holds the lock and has a child, the instance, with the
// props that the function child returns for this term. The candidate is an actor of [Lock.LeaderProps], which says more
// about the child and the term. The default of WithDrain is a sixth of Config.Watchdog, or less if Config.Renewal is
// long. The instance has that long to stop when its lease cannot be renewed.
//
// To hand over, stop the candidate. The instance ends the message that it is handling and stops; the messages behind it
// go to the next instance. Close the System, and shut down the remote, after that. Close releases the lock at once, as
// for any leader, so the next instance may start while this instance is still stopping.
//
// The mailbox of the instance must not block, as an [actor.Bounded] mailbox does when it is full. Its own receiver
// middleware must pass on the headers of messages, and must not panic while it handles [actor.Stopped].
//
// An instance handles no message after the end of its lease, even if its process was paused meanwhile. If the instance
// stops later than that, an error is logged, since the next instance may have run alongside it. The sender of a message
// that the instance does not handle is answered with [actor.DeadLetterResponse]. Messages that other actors send to the
// instance's own PID are not moved to the next instance: use the proxy for messages that must not get lost.
func (s *Singleton) Props(child func(term context.Context) *actor.Props, options ...LeadOption) *actor.Props {
	if s == nil || s.lock.checkUsable() != nil || child == nil {
		return (&Lock{invalid: errNoSingleton}).LeaderProps(child)
	}
	drain := defaultDrain(s.lock.runtime.Rules().Config)
	return s.lock.LeaderProps(func(term context.Context) *actor.Props {
		props := child(term)
		if props == nil {
			return nil
		}
		g := &gate{singleton: s, term: term, hold: HoldFrom(term), closed: make(chan struct{})}
		return props.Clone(actor.WithReceiverMiddleware(g.middleware))
	}, append([]LeadOption{WithDrain(drain)}, options...)...)
}

// Redis keeps the whereabouts of a singleton for keepWhereabouts after the lease of its instance. A proxy can find out
// until then which messages the instance has begun.
const keepWhereabouts = time.Hour

// defaultDrain returns the default of WithDrain for a singleton.
func defaultDrain(c *machine.Config) time.Duration {
	return min(c.Watchdog/6, longestDrain(c)/2)
}

// Proxy returns the props of an actor that forwards its messages to the instance, on any node: each message at most
// once, and in order. The messages must be protobuf messages. The instance sees their senders and headers, and answers
// directly.
//
// While there is no instance, or while 64 messages or 1 MiB are not begun, up to 1,000 messages wait, each for at most
// 10 s or the time of [WithWait], which must be positive. The wait begins anew at a hand-over. A message that is not
// handled is refused. So is a message whose outcome is not known, because the process of the instance was killed or is
// cut off. When the proxy stops, it refuses the messages that it has. The sender of a refused message is answered with
// [actor.DeadLetterResponse]; without a sender, the proxy publishes an [actor.DeadLetterEvent]. Between processes an
// answer may be lost, so a sender that needs one must bound its wait.
//
// A process needs only one proxy for each singleton that it sends to, and the messages of one proxy are in order. A
// proxy without messages costs nothing.
func (s *Singleton) Proxy(options ...WaitOption) *actor.Props {
	return s.proxyProps(options)
}
