package grains

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/redis/rueidis"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// activatorName is the id of the PID of the activator, by which other nodes reach it.
const activatorName = "lockkeeper-grains"

// resume is shared, since proto.actor keeps a process for every strategy value.
var resume = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective })

// activator is the parent of the grains of this process. It must never restart, since a restart would stop the grains;
// its supervisor resumes it.
type activator struct {
	d    *Directory
	has  activations[*actor.PID]
	pids map[string]*actor.PID // of the grains that run
	term *term
	last int64 // the highest token that the activator was given in this term
	over *termOver
}

// termOver says that a term ends.
type termOver struct {
	// stopped is closed when the last grain of the term has stopped.
	stopped chan struct{}
	// late is the number of grains that have stopped after the end of the lease.
	late int
}

// registered is the reply to a registration.
type registered struct {
	it    *activation[*actor.PID]
	token int64
	err   error
}

// checkEntries asks for a check of the entries of running grains: of all entries, or of some.
type checkEntries struct{ all bool }

// checkedEntries says which entries of a member Redis does not have. If behind is true, Redis may have lost other
// entries too.
type checkedEntries struct {
	member string
	lost   []entryOf
	behind bool
}

// startActivator starts the activator, once.
func (d *Directory) startActivator() error {
	for _, kind := range d.cluster.GetClusterKinds() {
		if strings.Contains(kind, "/") {
			return invalid(fmt.Errorf("the kind %q has a slash, which separates kinds from identities", kind))
		}
	}
	props := actor.PropsFromProducer(func() actor.Actor { return &activator{d: d, pids: map[string]*actor.PID{}} },
		actor.WithGuardian(resume), actor.WithSupervisor(d.post.Host.Supervisor(actor.DefaultSupervisorStrategy())))
	pid, err := d.cluster.ActorSystem.Root.SpawnNamed(props, activatorName)
	if err == nil { // else the name belongs to another Directory
		d.activator = pid
	}
	return err
}

// Receive implements actor.Actor.
func (a *activator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *term:
		a.term, a.last = m, 0
		a.has.begin()
	case *cluster.ActivationRequest:
		a.ask(ctx, m)
	case *registered:
		a.registered(ctx, m)
	case *actor.Terminated:
		if it := a.has.all[grainOf(m.Who)]; it != nil && it.runs {
			a.stopped(ctx, it)
		}
	case checkEntries:
		a.check(ctx, m.all)
	case *checkedEntries:
		a.checked(ctx, m)
	case *termOver:
		a.over = m
		for _, it := range a.has.close() {
			a.d.post.Deliver(a.pids[it.grain], &actor.PoisonPill{})
		}
	}
	if a.over != nil && len(a.has.all) == 0 {
		a.over.late = a.has.late
		close(a.over.stopped)
		a.over, a.term = nil, nil
	}
}

func (a *activator) ask(ctx actor.Context, m *cluster.ActivationRequest) {
	grain := m.ClusterIdentity.AsKey()
	_, known := a.d.cluster.TryGetClusterKind(m.ClusterIdentity.GetKind())
	if a.term == nil || !known || !a.term.serves() {
		a.d.post.Deliver(ctx.Sender(), &cluster.ActivationResponse{Failed: true})
		return
	}
	it, what, register := a.has.ask(grain, ctx.Sender())
	switch {
	case register:
		a.register(ctx, it, m.RequestId)
	case what == running:
		a.d.post.Deliver(ctx.Sender(), &cluster.ActivationResponse{Pid: a.pids[grain]})
	case what == refused:
		a.d.post.Deliver(ctx.Sender(), &cluster.ActivationResponse{Failed: true})
	}
}

// register registers an activation on another goroutine. Only the reply to this call can start the activation.
func (a *activator) register(ctx actor.Context, it *activation[*actor.PID], expected string) {
	self, d, member, last := ctx.Self(), a.d, a.term.member.ID, a.last
	go func() {
		token, err := d.redis.register(it.grain, member, expected, last)
		d.post.Deliver(self, &registered{it, token, err})
	}()
}

func (a *activator) registered(ctx actor.Context, m *registered) {
	if refused, is := rueidis.IsRedisErr(m.err); is {
		a.d.post.Host.Error("Redis refuses the registration of a grain", "grain", m.it.grain, "error", refused)
	}
	if m.err != nil {
		a.d.counts.unregistered.Add(1)
	}
	a.last = max(a.last, m.token)
	if !a.has.registered(m.it, m.token) {
		var response proto.Message = &cluster.ActivationResponse{Failed: true}
		if entry, is := m.err.(entryChanged); is {
			response = wrapperspb.String(string(entry)) // the entry says where the grain is
		}
		a.refuse(m.it, response)
		return
	}
	pid, err := a.start(ctx, m.it)
	if err != nil {
		if err != errNoLease {
			a.d.post.Host.Error("a grain cannot be started", "grain", m.it.grain, "error", err)
		}
		a.has.stopped(m.it, true) // the grain has never run
		a.refuse(m.it, &cluster.ActivationResponse{Failed: true})
		return
	}
	a.pids[m.it.grain] = pid
	for _, from := range m.it.answered() {
		a.d.post.Deliver(from, &cluster.ActivationResponse{Pid: pid})
	}
}

// start starts a grain. Its producer is the user's, and may panic.
func (a *activator) start(ctx actor.Context, it *activation[*actor.PID]) (pid *actor.PID, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("its producer has panicked: %v", panicked)
		}
	}()
	if !a.term.serves() {
		return nil, errNoLease
	}
	kind, name, _ := strings.Cut(it.grain, "/")
	activated, _ := a.d.cluster.TryGetClusterKind(kind)
	box := newMailbox(a.d.post, a.term, it, &a.d.counts.refused)
	props := cluster.WithClusterIdentity(activated.Props, cluster.NewClusterIdentity(name, kind)).Clone(
		actor.WithOnInit(func(c actor.Context) { c.Set(box.term) }),
		actor.WithReceiverMiddleware(a.stops(it)),
		actor.WithMailbox(func() actor.Mailbox { return box }))
	pid, err = ctx.SpawnNamed(props, strings.TrimPrefix(pidOf(it.grain), activatorName+"/"))
	if err == nil {
		activated.Inc()
		a.d.counts.starts.Add(1)
		a.d.counts.running.Add(1)
	}
	return pid, err
}

// The id of a PID does not contain the slashes of an identity: otherwise the grain "x/y" and the child "y" of the grain
// "x" would have the same PID.
var (
	escapes   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescapes = strings.NewReplacer("%25", "%", "%2F", "/")
)

// pidOf returns the id of the PID of a grain, and grainOf the grain.
func pidOf(grain string) string {
	kind, identity, _ := strings.Cut(grain, "/")
	return activatorName + "/" + kind + "/" + escapes.Replace(identity)
}

func grainOf(pid *actor.PID) string {
	kind, identity, _ := strings.Cut(strings.TrimPrefix(pid.Id, activatorName+"/"), "/")
	return kind + "/" + unescapes.Replace(identity)
}

// stops lets a grain stop even if it panics meanwhile: proto.actor would restart the grain.
func (a *activator) stops(it *activation[*actor.PID]) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, e *actor.MessageEnvelope) {
			switch e.Message.(type) {
			case *actor.Stopping, *actor.Stopped:
				defer func() {
					if panicked := recover(); panicked != nil {
						a.d.post.Host.Error("a grain has panicked while it stopped", "grain", it.grain, "panic", panicked)
					}
				}()
			}
			next(ctx, e)
		}
	}
}

func (a *activator) stopped(ctx actor.Context, it *activation[*actor.PID]) {
	kind, _, _ := strings.Cut(it.grain, "/")
	if activated, ok := a.d.cluster.TryGetClusterKind(kind); ok {
		activated.Dec()
	}
	a.d.counts.running.Add(-1)
	delete(a.pids, it.grain)
	a.has.stopped(it, a.term.hold.Valid())
	a.refuse(it, nil)
}

// check looks at entries on another goroutine, since a grain without an entry may start elsewhere. The mark of this
// member says whether a failover has lost entries. To find entries that an operator has removed, some of the entries,
// chosen at random, are read at each check.
func (a *activator) check(ctx actor.Context, all bool) {
	if a.term == nil {
		return
	}
	var entries []entryOf
	for grain, it := range a.has.all {
		if !all && len(entries) == maxEntries {
			break
		}
		if it.runs {
			entries = append(entries, entryOf{grain, entryText(a.term.member.ID, it.token)})
		}
	}
	self, d, member, last := ctx.Self(), a.d, a.term.member.ID, a.last
	go func() {
		timeout, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		mark, err := d.redis.marked(timeout, member)
		if err = errors.Join(err, d.redis.keep(timeout)); err != nil {
			return
		}
		lost, err := d.redis.lost(timeout, entries)
		if behind := mark < last; err == nil && behind && all {
			err = d.redis.mark(timeout, member)
		}
		if err == nil {
			d.post.Deliver(self, &checkedEntries{member, lost, mark < last && !all})
		}
	}()
}

// checked stops grains without an entry, if they still run.
func (a *activator) checked(ctx actor.Context, m *checkedEntries) {
	if a.term == nil || a.term.member.ID != m.member {
		return
	}
	if m.behind {
		a.check(ctx, true)
	}
	for _, one := range m.lost {
		it := a.has.all[one.grain]
		if !a.term.serves() || it == nil || !it.runs || it.stopping.Load() || entryText(m.member, it.token) != one.entry {
			continue
		}
		a.d.post.Host.Error("a grain is stopped: Redis has lost its entry, and another member may have it", "grain", one.grain)
		it.stopping.Store(true)
		a.d.post.DeliverSystem(a.pids[one.grain], &actor.Stop{})
	}
}

// refuse answers the processes that wait for an activation that does not run, and removes its entry.
func (a *activator) refuse(it *activation[*actor.PID], response proto.Message) {
	for _, from := range it.answered() {
		a.d.post.Deliver(from, response)
	}
	if it.token != 0 {
		a.d.sweeper.add(entryOf{it.grain, entryText(a.term.member.ID, it.token)})
	}
}
