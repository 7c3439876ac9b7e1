// Package grains runs proto.actor's grains so that each grain has at most one activation in all processes.
//
// A [Directory] is an identity lookup and a cluster provider. The members of the cluster are the processes that hold a
// lock of Lockkeeper in Redis, and Redis records which member is responsible for which grain:
//
//	client, err := lockkeeper.Connect("redis://127.0.0.1:6379")
//	directory, err := grains.New(client, grains.Config{})
//	system := actor.NewActorSystem()
//	network := remote.Configure(host, port, remote.WithServerOptions(grains.ServerOption(system)))
//	c := cluster.New(system, cluster.Configure("bank", directory.Provider(), directory.Lookup(), network,
//		cluster.WithKinds(cluster.NewKind("account", actor.PropsFromProducer(newAccount)))))
//	c.StartMember() // or StartClient, in a process that runs no grains
//	answer, err := c.Request("1001", "account", message)
//
//	err = directory.Leave(ctx) // at the shutdown
//	c.Shutdown(true)           // in a client, c.Remote.Shutdown(false)
//	client.Close()
//
// [docs/actors.md] has the guarantees with their times, and what each failure costs.
//
// [docs/actors.md]: https://github.com/lockkeeper-go/lockkeeper/blob/main/docs/actors.md#grains
package grains

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
)

// Config configures a Directory. The zero value of a field selects its default.
type Config struct {
	// Locks configures the System of the Directory. Locks.Watchdog is the lease of a member: the grains of a process
	// that was killed are missing for that time. Its default is 10 s here. Locks.Poll, 1 s by default, is the interval
	// at which a process looks for members. Use the same KeyPrefix, Watchdog and Poll in all processes. Locks.Linger is
	// not used.
	Locks lockkeeper.Config
	// Drain is the time that a grain may take to handle a message or to stop, when the lease of its member cannot be
	// renewed, without running alongside its successor; see [lockkeeper.WithDrain] for its limits. Default: a sixth of
	// Locks.Watchdog.
	Drain time.Duration
	// Activation is the time that a lookup waits for a grain that no member can run yet. Set it to less than the
	// timeout of requests, which is 5 s by default. Default 4.5 s.
	Activation time.Duration
	// Place selects the member that is to run a grain, from the members that have its kind; there is at least one.
	// Place is called on the goroutine of the request, when this process does not know where the grain is. The selected
	// member is asked first, and starts the grain only if no other member is responsible for the grain. So use the same
	// Place in all processes, and let it select the same member for a grain again, or lookups take another round.
	// Default: by a hash of the grain.
	Place func(members []Member, kind, identity string) Member
}

// Member is a process that runs grains.
type Member struct {
	// ID differs for each term of the member: a process that has lost its lease comes back with a new ID.
	ID string
	// Address is the address of the member's actor system.
	Address string
	// Kinds are the kinds of grains that the member runs.
	Kinds []string
}

// A Directory locates grains, and keeps at most one activation of each. It belongs to one cluster.Cluster. Its methods
// may be called from any goroutine.
type Directory struct {
	cfg     Config
	client  rueidis.Client
	started atomic.Bool
	// start sets the fields below.
	cluster   *cluster.Cluster
	locks     atomic.Pointer[lockkeeper.System]
	post      *delivery.Post // runs no code of the host where this would delay grains
	redis     store
	sweeper   *sweeper
	activator *actor.PID // nil for a client
	// begun is closed when the start has ended.
	begun chan struct{}
	// running is closed before begun if the start has succeeded.
	running chan struct{}

	// announcer shows the members to proto.actor.
	announcer *host.Host
	// announced is the list that announcer is to show; nil if announcer has shown it.
	announced atomic.Pointer[cluster.Members]

	view atomic.Pointer[view]
	// looking guards topology and cursor.
	looking  sync.Mutex
	topology topology
	// cursor is where the next look for entries of members that have left begins.
	cursor uint64
	look   chan struct{} // asks for a look at the members
	silent sync.Map      // the time at which a member has not answered, by its id
	counts counts
	// unobserve ends the reading of counts by the meter; nil if there is none.
	unobserve func() error
	term      atomic.Pointer[term]

	// candidacy ends when the Directory leaves.
	candidacy context.Context
	resign    context.CancelFunc
	resigned  chan struct{}
	// ctx ends after the candidacy, and with it all goroutines.
	ctx  context.Context
	end  context.CancelFunc
	done sync.WaitGroup
}

var (
	errNoDirectory = errors.New("the Directory is nil, or does not come from New")
	errNoCluster   = errors.New("the cluster is nil")
	errNoContext   = errors.New("the context is nil")
	errStarted     = errors.New("the Directory is started already: use another one for each cluster.Cluster")
	errLeft        = errors.New("lockkeeper: grains: the Directory has left")
)

func invalid(err error) error {
	return fmt.Errorf("lockkeeper: grains: %w: %w", lockkeeper.ErrInvalid, err)
}

// New returns a Directory, for cluster.Configure. Use a client of [lockkeeper.Connect], and close it after Leave. The
// error is ErrInvalid.
func New(client rueidis.Client, cfg Config) (*Directory, error) {
	if client == nil {
		return nil, invalid(errors.New("the client is nil"))
	}
	if cfg.Activation < 0 || cfg.Drain < 0 {
		return nil, invalid(fmt.Errorf("the Activation of %v or the Drain of %v is negative", cfg.Activation, cfg.Drain))
	}
	if cfg.Locks.Watchdog == 0 {
		cfg.Locks.Watchdog = 10 * time.Second
	}
	if cfg.Locks.Poll == 0 {
		cfg.Locks.Poll = time.Second
	}
	// Other processes must see at once that a member leaves; New refuses a negative Linger.
	cfg.Locks.Linger = min(cfg.Locks.Linger, 0)
	if cfg.Drain == 0 {
		cfg.Drain = cfg.Locks.Watchdog / 6
	}
	if cfg.Activation == 0 {
		cfg.Activation = 4500 * time.Millisecond
	}
	if cfg.Place == nil {
		cfg.Place = byHash
	}
	d := &Directory{cfg: cfg, client: client, look: make(chan struct{}, 1), resigned: make(chan struct{}),
		begun: make(chan struct{}), running: make(chan struct{})}
	d.candidacy, d.resign = context.WithCancel(context.Background())
	d.ctx, d.end = context.WithCancel(context.Background())
	d.view.Store(&view{})
	return d, nil
}

// Lookup returns the identity lookup for cluster.Configure. Use it together with Provider.
func (d *Directory) Lookup() cluster.IdentityLookup { return lookup{d} }

// Provider returns the cluster provider for cluster.Configure. Its StartMember returns when this process has its lease;
// its StartClient makes this process a client, which runs no grains. The methods of cluster.Cluster panic with the
// error of [lockkeeper.New], or of the first try to acquire the lease or to read the members, within 10 s.
func (d *Directory) Provider() cluster.ClusterProvider { return provider{d} }

// System returns the System that holds the lease of this member. The grains may use its locks too. It is nil before
// cluster.StartMember or StartClient, and Leave closes it.
func (d *Directory) System() *lockkeeper.System {
	if d == nil {
		return nil
	}
	return d.locks.Load()
}

// Leave stops the grains of this process, gives up their entries in Redis and the lease, and closes the System. First
// the grains handle the messages that are in their mailboxes; from then on other members run them. On a member, Leave
// returns 1.5 times Poll later, when other processes have noticed that it has left. Stop the senders of requests before
// Leave, and call Leave before cluster.Shutdown.
//
// If ctx ends first, the grains no longer handle messages, and Leave returns the cause of ctx. The lease is not
// released before the last grain has stopped. Other members run the grains after the release, or when the lease has
// ended because this process has ended. Leave may be called again. During the start, Leave waits until the start has
// ended.
func (d *Directory) Leave(ctx context.Context) error {
	switch {
	case d == nil || d.client == nil:
		return invalid(errNoDirectory)
	case ctx == nil:
		return invalid(errNoContext)
	}
	d.resign()
	if d.started.CompareAndSwap(false, true) {
		close(d.begun)
		return nil // the Directory has never been started, and can no longer be started
	}
	select {
	case <-d.begun:
	case <-ctx.Done():
		select {
		case <-d.begun: // there may be grains: they handle no further messages
		default:
			return fmt.Errorf("lockkeeper: grains: the start has not ended: %w", context.Cause(ctx))
		}
	}
	select {
	case <-d.running:
	default:
		return nil // the start has failed
	}
	select {
	case <-d.resigned:
	case <-ctx.Done():
		if t := d.term.Load(); t != nil {
			t.end(context.Cause(ctx))
		}
		return fmt.Errorf("lockkeeper: grains: not all grains have stopped: %w", context.Cause(ctx))
	}
	if d.activator != nil {
		// Leave waits until other processes have seen that this member has left: until then, a message to a PID that
		// they remember is refused, not lost.
		select {
		case <-time.After(d.cfg.Locks.Poll + d.cfg.Locks.Poll/2):
		case <-d.ctx.Done(): // the Directory has left already
		case <-ctx.Done():
		}
	}
	d.end()
	d.done.Wait()
	return d.close(ctx)
}

// close ends the goroutines and the System that start has begun.
func (d *Directory) close(ctx context.Context) error {
	if d.activator != nil {
		d.post.DeliverSystem(d.activator, &actor.Stop{})
	}
	if d.unobserve != nil {
		d.post.Host.Measure(func() { _ = d.unobserve() }) // it waits for the other callbacks of the meter
	}
	defer d.post.Host.Flush()
	d.announcer.Flush()
	d.redis.scripts.Close()
	return d.System().Close(ctx)
}

// start starts the System, and for a member its activator and its candidacy.
func (d *Directory) start(c *cluster.Cluster, member bool) error {
	switch {
	case d == nil || d.client == nil:
		return invalid(errNoDirectory)
	case c == nil:
		return invalid(errNoCluster)
	}
	if !d.started.CompareAndSwap(false, true) {
		return invalid(errStarted)
	}
	defer close(d.begun)
	err := d.open(c)
	if err == nil {
		ctx, cancel := context.WithTimeout(d.ctx, startTimeout)
		defer cancel()
		if err = d.refresh(ctx); err == nil && member {
			err = d.join(ctx)
		}
	}
	if err != nil {
		d.resign()
		d.end()
		if d.System() != nil {
			d.done.Wait()
			err = errors.Join(err, d.close(context.Background()))
		}
		return err
	}
	d.announcer.Flush()
	if !member {
		close(d.resigned)
	}
	d.done.Go(d.watch)
	close(d.running)
	return nil
}

// startTimeout bounds how long StartMember waits for its lease.
const startTimeout = 10 * time.Second

// open starts what both members and clients need.
func (d *Directory) open(c *cluster.Cluster) (err error) {
	logger := d.cfg.Locks.Logger
	if logger == nil {
		logger = c.Logger()
	}
	d.cluster, d.post = c, &delivery.Post{System: c.ActorSystem, Host: host.New(c.ActorSystem, logger)}
	d.announcer = host.New(c.ActorSystem, logger)
	if d.redis, err = newStore(d.client, d.cfg.Locks.KeyPrefix, c.Config.Name, d.cfg.Locks.Watchdog); err != nil {
		return invalid(err)
	}
	d.redis.scripts.AwaitReplicas(d.cfg.Locks.Replicas, cmp.Or(d.cfg.Locks.ReplicaTimeout, callTimeout/2))
	d.sweeper = &sweeper{sweep: d.sweep}
	locks, err := lockkeeper.New(c.ActorSystem, d.client, d.cfg.Locks)
	d.locks.Store(locks)
	if err == nil && d.cfg.Locks.Meter != nil {
		d.unobserve = d.counts.observe(d.cfg.Locks.Meter)
	}
	return err
}

// lookup is a Directory as cluster.IdentityLookup.
type lookup struct{ d *Directory }

// Setup implements cluster.IdentityLookup.
func (lookup) Setup(*cluster.Cluster, []string, bool) {}

// Get implements cluster.IdentityLookup.
func (l lookup) Get(identity *cluster.ClusterIdentity) *actor.PID { return l.d.get(identity) }

// RemovePid implements cluster.IdentityLookup.
func (lookup) RemovePid(*cluster.ClusterIdentity, *actor.PID) {}

// Shutdown implements cluster.IdentityLookup, for programs that have not called Leave.
func (l lookup) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := l.d.Leave(ctx); err != nil && l.d.System() != nil {
		l.d.post.Host.Error("a member has not left in good order", "error", err)
	}
}

const shutdownTimeout = 5 * time.Second

// provider is a Directory as cluster.ClusterProvider.
type provider struct{ d *Directory }

// StartMember implements cluster.ClusterProvider.
func (p provider) StartMember(c *cluster.Cluster) error { return p.d.start(c, true) }

// StartClient implements cluster.ClusterProvider.
func (p provider) StartClient(c *cluster.Cluster) error { return p.d.start(c, false) }

// Shutdown implements cluster.ClusterProvider.
func (provider) Shutdown(bool) error { return nil }
