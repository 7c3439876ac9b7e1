package lockkeeper

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/singleton"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The defaults of a proxy.
const (
	proxyBuffer = 1000
	proxyWait   = 10 * time.Second
)

// longestWait bounds WithWait, so that no sum overflows.
const longestWait = 100 * 365 * 24 * time.Hour

var (
	errNoSingleton   = errors.New("the singleton, its System or its function is nil")
	errOtherInstance = errors.New("another instance has the lock, or Redis has lost the lock and its token counter")
	errNoProxy       = errors.New("the wait of a proxy must be positive")
)

// key returns the name with the key prefix.
func (s *Singleton) key() string { return s.lock.runtime.Rules().KeyPrefix + s.lock.name }

// proxyProps implements Proxy.
func (s *Singleton) proxyProps(options []WaitOption) *actor.Props {
	if s == nil || s.lock.checkUsable() != nil {
		return actor.PropsFromFunc(stopAtOnce)
	}
	config := s.lock.runtime.Rules().Config
	limits := singleton.Limits{Buffer: proxyBuffer, Wait: proxyWait, Poll: config.Poll}
	var wrong error
	for _, option := range options {
		var r acquireOptions
		if option == nil {
			wrong = errNoOption
			continue
		}
		option.apply(&r)
		if limits.Wait = min(*r.wait, longestWait); limits.Wait <= 0 {
			wrong = errNoProxy
		}
	}
	if wrong != nil {
		s.lock.runtime.Log(slog.LevelError, "a proxy cannot be started", "singleton", s.Name(), "error", wrong)
		return actor.PropsFromFunc(stopAtOnce)
	}
	r := &refusals{runtime: s.lock.runtime, system: s.system.actors, name: s.Name()}
	post := &delivery.Post{System: s.system.actors, Host: s.system.host, Late: r.refuseMail}
	return actor.PropsFromProducer(func() actor.Actor {
		return &proxy{
			singleton: s, refusals: r,
			outbox: &singleton.Outbox[letter]{Proxy: uuid.NewString(), Limits: limits},
		}
	}, post.WithMailbox(actor.Unbounded(), r))
}

func stopAtOnce(ctx actor.Context) {
	if _, is := ctx.Message().(*actor.Started); is {
		ctx.Stop(ctx.Self())
	}
}

// proxy is the actor of Proxy, until it is restarted or stopped.
type proxy struct {
	*refusals
	singleton *Singleton
	outbox    *singleton.Outbox[letter]
	timer     *time.Timer
	// watched is the gate that the proxy watches; nil if there is none.
	watched *actor.PID
	// failed: the last lookup has failed.
	failed bool
	// absent is the gate that the last lookup has found but that cannot be reached; "" if there is none.
	absent string
	// warned: the log has a warning about absent.
	warned bool
}

// letter is a message that the proxy was sent.
type letter struct {
	message proto.Message
	sender  *actor.PID
	header  actor.ReadonlyMessageHeader
}

// size returns about how many bytes the remote sends.
func (l letter) size() int {
	n := proto.Size(l.message)
	if l.header != nil {
		for key, value := range l.header.ToMap() {
			n += len(key) + len(value)
		}
	}
	return n
}

// lookupDone is sent to the proxy when a lookup of the instance in Redis has ended, with a reply or an error.
type lookupDone struct {
	// by is the outbox that asked for the lookup. The PID may belong to another proxy by now.
	by  *singleton.Outbox[letter]
	at  singleton.Whereabouts
	err error
}

// timeToTick is sent to the proxy when its outbox has something due.
type timeToTick struct{}

// Receive implements actor.Actor.
func (p *proxy) Receive(ctx actor.Context) {
	now := p.runtime.Now()
	switch m := ctx.Message().(type) {
	case *actor.Stopping, *actor.Restarting:
		if p.timer != nil {
			p.timer.Stop()
		}
		if p.watched != nil {
			ctx.Unwatch(p.watched)
		}
		p.refuse(p.outbox.Stop())
	case timeToTick:
		p.act(ctx, p.outbox.Tick(now))
	case lookupDone:
		if m.by != p.outbox {
			return
		}
		if m.err == nil {
			p.failed = false
			do := p.outbox.HandleLookup(now, &m.at)
			p.warnWithoutRemote(ctx, p.outbox.Place()) // HandleLookup has cleared the place if the instance has left
			p.act(ctx, do)
			return
		}
		if !p.failed {
			p.failed = true
			p.runtime.Log(slog.LevelWarn, "a proxy cannot find out from Redis where the instance of its singleton is",
				"singleton", p.name, "error", m.err)
		}
		p.act(ctx, p.outbox.HandleLookup(now, nil))
	case *messages.SingletonHere:
		p.act(ctx, p.outbox.HandleState(now, singleton.GateState{
			Proxy: m.Proxy, Gate: m.Gate, Probe: m.Probe, Received: m.Received, Begun: m.Begun, Forgotten: m.Forgotten,
		}))
	case *actor.DeadLetterResponse: // the gate is closed, or its node no longer has it
		p.act(ctx, p.outbox.Suspect(now))
	case *actor.Terminated: // the node has ended, or the connection is broken
		if p.watched != nil && m.Who.Equal(p.watched) {
			p.act(ctx, p.outbox.Suspect(now))
		}
	case actor.SystemMessage, actor.AutoReceiveMessage:
	case proto.Message:
		l := letter{m, ctx.Sender(), ctx.MessageHeader()}
		p.act(ctx, p.outbox.Add(now, l, l.size()))
	default:
		p.runtime.Log(slog.LevelError, "a proxy was sent a message that is not protobuf", "singleton", p.name, "type", fmt.Sprintf("%T", m))
		p.report(m, ctx.Sender())
	}
}

// noAddress is the address of an actor system without proto.actor's remote.
const noAddress = "nonhost"

// warnWithoutRemote logs, once for each gate, that the gate is in another process, and that one of the two processes
// has no remote. It logs only when a second lookup finds the same gate: the gate of an instance that has just ended in
// this process is found once at most.
func (p *proxy) warnWithoutRemote(ctx actor.Context, at singleton.Place) {
	_, here := ctx.ActorSystem().ProcessRegistry.GetLocal(gateName(at.Gate))
	remote := at.Address != noAddress && ctx.Self().Address != noAddress
	switch {
	case at.Gate == "" || here || remote:
		p.absent, p.warned = "", false
	case at.Gate != p.absent:
		p.absent, p.warned = at.Gate, false
	case !p.warned:
		p.warned = true
		p.runtime.Log(slog.LevelWarn, "a singleton cannot be reached: its process or this one has no proto.actor remote",
			"singleton", p.name, "address", at.Address)
	}
}

// act carries out the actions of the outbox.
func (p *proxy) act(ctx actor.Context, do singleton.Actions[letter]) {
	p.refuse(do.Refused)
	place := p.outbox.Place()
	to, there := actor.NewPID(place.Address, gateName(place.Gate)), true
	for _, each := range do.Sent {
		there = p.runtime.Deliver(to, p.envelope(ctx.Self(), each)) && there
	}
	if do.Probe != nil {
		probe := &messages.SingletonProbe{Proxy: p.outbox.Proxy, Number: do.Probe.Number, Next: do.Probe.Next, Known: do.Probe.Known}
		p.runtime.Deliver(to, &actor.MessageEnvelope{Message: probe, Sender: ctx.Self()})
		p.watch(ctx, to)
	}
	if do.Look {
		self, by := ctx.Self(), p.outbox
		p.singleton.system.board.Look(p.singleton.key(), func(w singleton.Whereabouts, err error) {
			p.runtime.Deliver(self, lookupDone{by, w, err})
		})
	}
	if !there { // the gate was in this process
		p.act(ctx, p.outbox.Suspect(p.runtime.Now()))
		return
	}
	p.setTimer(ctx.Self())
}

// watch watches a gate on another node, so that the proxy notices at once that the node ends. A broken connection ends
// the watch, which begins again with each probe.
func (p *proxy) watch(ctx actor.Context, gate *actor.PID) {
	if p.watched != nil && !p.watched.Equal(gate) {
		ctx.Unwatch(p.watched)
	}
	if p.watched = nil; gate.Address != ctx.Self().Address {
		p.watched = gate
		ctx.Watch(gate)
	}
}

// envelope returns a message as the gate gets it.
func (p *proxy) envelope(self *actor.PID, n singleton.Numbered[letter]) *actor.MessageEnvelope {
	e := request.Envelope(n.Message.message, self, n.Message.header)
	e.SetHeader(headerProxy, p.outbox.Proxy)
	e.SetHeader(headerNumber, strconv.FormatUint(n.Number, 10))
	if sender := n.Message.sender; sender != nil {
		e.SetHeader(headerSender, sender.Address+" "+sender.Id)
	} else {
		delete(e.Header, headerSender) // the message may have been forwarded
	}
	return e
}

// setTimer sets the timer for the next tick. Proxies of several processes do not look at the same time.
func (p *proxy) setTimer(self *actor.PID) {
	at, due := p.outbox.NextWake()
	switch {
	case !due && p.timer != nil:
		p.timer.Stop()
	case due:
		in := max(at-p.runtime.Now(), 0)
		in += rand.N(in/16 + 1)
		if p.timer == nil {
			p.timer = time.AfterFunc(in, func() { p.runtime.Deliver(self, timeToTick{}) })
		} else {
			p.timer.Reset(in)
		}
	}
}

// refusals reports the messages of a proxy that are refused. It is also the CrashHandler of the proxy's mailbox.
type refusals struct {
	runtime *actors.Runtime
	system  *actor.ActorSystem
	name    string // of the singleton
}

var _ delivery.CrashHandler = (*refusals)(nil)

func (r *refusals) refuse(letters []letter) {
	for _, each := range letters {
		r.report(each.message, each.sender)
	}
}

// report reports a message that is refused.
func (r *refusals) report(message any, sender *actor.PID) {
	r.runtime.Observer().MessageRefused()
	if sender != nil {
		r.runtime.Deliver(sender, &actor.DeadLetterResponse{})
		return
	}
	r.runtime.CallHost("a subscriber of the event stream", func() {
		r.system.EventStream.Publish(&actor.DeadLetterEvent{Message: message})
	})
}

// refuseMail refuses a message that the proxy has received and does not handle.
func (r *refusals) refuseMail(message any, sender *actor.PID) {
	switch message.(type) {
	case timeToTick, lookupDone, *messages.SingletonHere, *actor.DeadLetterResponse, actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		r.report(message, sender)
	}
}

// Begins implements delivery.CrashHandler.
func (r *refusals) Begins() {}

// Crashed implements delivery.CrashHandler. Middleware of the host may panic.
func (r *refusals) Crashed(message any, sender *actor.PID, reason any) {
	r.runtime.Log(slog.LevelError, "a proxy has crashed", "singleton", r.name, "panic", reason)
	r.refuseMail(message, sender)
}
