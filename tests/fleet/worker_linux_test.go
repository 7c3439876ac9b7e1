package fleet_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/redis/rueidis"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/grains"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// settings are the settings of a worker, in its environment.
type settings struct {
	// Role is candidate or sender; of grains, host or caller; or node, which is all of them.
	Role  string
	Redis string
	Store string // its URL; none if empty
	// Name is the name of a worker whose connections the network at the address Network carries.
	Name, Network string
	Port          int // of the remote; 0: any
	Watchdog      time.Duration
	Drain         time.Duration // of grains
	Replicas      int
	Rate, Burst   int           // of a sender, bursts a second, and messages of each
	Callers       int           // of a caller, goroutines
	Grains        int           // of a caller, how many it asks at a time
	Handling      time.Duration // of a message of a grain or singleton
	Brief         time.Duration // of a message of the singleton, if not 0
	Stopping      time.Duration // of a grain or singleton
	Disthash      bool          // proto.actor's own lookup finds the grains
	Seq           int64         // a number for each worker of a test
}

func (s settings) is(role string) bool { return s.Role == role || s.Role == "node" }

func (s settings) environment() []string {
	text, _ := json.Marshal(s) // cannot fail: texts and numbers
	return append(os.Environ(), "FLEET_WORKER="+string(text))
}

func readSettings(text string) (s settings) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	return s
}

// report writes an event for the judge: the time, which all processes share, what happens to which actor, its token and a number.
func report(what, name string, token, n int64) {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	reporting.Lock()
	defer reporting.Unlock()
	fmt.Printf("%d %s %s %d %d\n", now.Nano(), what, name, token, n) // one write: it is in the pipe even if the process is killed next
}

var reporting sync.Mutex

// theSingleton is the name of the singleton in events, clusterName the name of the cluster.
const (
	theSingleton = "singleton"
	clusterName  = "fleet"
)

// connect returns a client of Redis.
func (s settings) connect() rueidis.Client {
	options, err := rueidis.ParseURL(s.Redis)
	if err != nil {
		panic(err)
	}
	if s.Name != "" {
		dial := dialer(s.Network, s.Name)
		options.DialCtxFn = func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dial(ctx, address)
		}
	}
	client, err := redisio.ConnectWith(context.Background(), options)
	if err != nil {
		panic(err)
	}
	return client
}

// remoting returns the configuration of the remote.
func (s settings) remoting() *remote.Config {
	var options []remote.ConfigOption
	if s.Name != "" {
		options = append(options, remote.WithDialOptions(grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer(s.Network, s.Name))))
	}
	return remote.Configure("127.0.0.1", s.Port, options...)
}

// work is the main function of a worker. It ends with SIGTERM.
func work(s settings) {
	terminated, terminate := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer terminate()
	logger := slog.New(quiet{slog.NewTextHandler(os.Stderr, nil)})
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	client, to := s.connect(), openStore(s.Store)
	config := lockkeeper.Config{Watchdog: s.Watchdog, Replicas: s.Replicas}
	var running sync.WaitGroup
	var locks *lockkeeper.System
	var leave func()
	var node *remote.Remote
	if s.is("host") || s.is("caller") {
		config.Poll = 200 * time.Millisecond
		directory, err := grains.New(client, grains.Config{Locks: config, Drain: s.Drain})
		if err != nil {
			panic(err)
		}
		lookup := directory.Lookup()
		if s.Disthash {
			lookup = disthash.New()
		}
		c := cluster.New(system, cluster.Configure(clusterName, directory.Provider(), lookup, s.remoting(),
			cluster.WithKinds(cluster.NewKind("counter", s.grain(to)))))
		if s.is("host") {
			c.StartMember()
		} else {
			c.StartClient()
		}
		if s.is("caller") {
			running.Go(func() { s.call(c, terminated) })
		}
		locks, node = directory.System(), c.Remote
		leave = func() { must(directory.Leave(context.Background())) }
	} else {
		node = remote.NewRemote(system, s.remoting())
		node.Start()
		var err error
		if locks, err = lockkeeper.New(system, client, config); err != nil {
			panic(err)
		}
		leave = func() { must(locks.Close(context.Background())) }
	}
	singleton := locks.Singleton("fleet")
	var spawned []*actor.PID
	if s.is("candidate") {
		spawned = append(spawned, system.Root.Spawn(singleton.Props(func(term context.Context) *actor.Props { return s.instance(to, term) })))
	}
	if s.is("sender") {
		proxy := system.Root.Spawn(singleton.Proxy(lockkeeper.WithWait(time.Minute)))
		spawned = append(spawned, proxy)
		running.Go(func() { s.send(system, proxy, terminated) })
	}
	report("ready", "-", 0, 0)
	<-terminated.Done()
	running.Wait()
	report("stopping", "-", 0, 0)
	for _, pid := range spawned {
		must(system.Root.StopFuture(pid).Wait())
	}
	leave()
	client.Close()
	<-time.After(100 * time.Millisecond) // for the last answers: a remote that is shut down drops them
	node.Shutdown(true)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// quiet leaves out the log of proto.actor, whose remote logs each broken connection. What Lockkeeper logs about overlaps is
// an event.
type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	ours := false
	r.Attrs(func(a slog.Attr) bool {
		late := strings.Contains(r.Message, "had ended")
		switch a.Key {
		case "grains":
			report("overrun", "-", 0, a.Value.Int64())
		case "singleton":
			if late {
				report("overrun", theSingleton, 0, 1)
			}
		case "grain":
			if strings.Contains(r.Message, "has lost its entry") {
				_, name, _ := strings.Cut(a.Value.String(), "/")
				report("robbed", name, 0, 0)
			}
		case "lock":
		default:
			return true
		}
		ours = true
		return true
	})
	if !ours {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// counter is an instance of the singleton or an activation of a grain. It counts what it is sent, and answers.
type counter struct {
	settings
	store store
	name  string // of a singleton; the name of a grain is known when it starts
	token int64
	valid func(actor.Context) bool
	value int64
	left  int // so many messages later a grain stops by itself, and the next request starts it again
}

// instance returns the props of an instance of the singleton.
func (s settings) instance(to store, term context.Context) *actor.Props {
	hold := lockkeeper.HoldFrom(term)
	if s.Brief != 0 {
		s.Handling = s.Brief
	}
	return actor.PropsFromProducer(func() actor.Actor {
		return &counter{settings: s, store: to, name: theSingleton, token: hold.Token(), valid: func(actor.Context) bool { return hold.Valid() }}
	})
}

// grain returns the props of the grains.
func (s settings) grain(to store) *actor.Props {
	valid := func(ctx actor.Context) bool { return s.Disthash || grains.TermOf(ctx).Valid() }
	return actor.PropsFromProducer(func() actor.Actor { return &counter{settings: s, store: to, left: 10, valid: valid} })
}

func (c *counter) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		if c.name == "" {
			c.name, c.token = cluster.GetClusterIdentity(ctx).Identity, grains.TermOf(ctx).Token()
		}
		if c.Disthash {
			c.token = time.Now().UnixNano() // it has none
		}
		report("started", c.name, c.token, 0)
		c.value = c.store.load(c.name, c.token)
	case *actor.Stopped:
		<-time.After(c.Stopping)
		report("stopped", c.name, c.token, 0)
	case *wrapperspb.Int64Value:
		what := "begins"
		if !c.valid(ctx) {
			what = "begins-late"
		}
		report(what, c.name, c.token, m.Value)
		<-time.After(c.Handling)
		if c.store.client != nil {
			if c.store.save(c.name, c.token, c.value+1) {
				c.value++
				report("stored", c.name, c.token, c.value)
			} else {
				report("outdated", c.name, c.token, 0)
			}
		}
		report("ends", c.name, c.token, m.Value)
		ctx.Respond(m)
		if c.left--; c.left == 0 {
			ctx.Poison(ctx.Self())
		}
	}
}

// perWorker is how many messages have numbers of one worker.
const perWorker = 1e9

// send sends numbers until it is terminated, and waits until all of them are answered or refused, for at most 20 s.
func (s settings) send(system *actor.ActorSystem, proxy *actor.PID, terminated context.Context) {
	var waiting atomic.Int64
	ticker := time.NewTicker(time.Second / time.Duration(s.Rate))
	defer ticker.Stop()
	n := s.Seq * perWorker
	for {
		select {
		case <-terminated.Done():
			for deadline := time.Now().Add(20 * time.Second); waiting.Load() > 0 && time.Now().Before(deadline); {
				<-time.After(10 * time.Millisecond)
			}
			return
		case <-ticker.C:
			for range s.Burst {
				if waiting.Load() > 500 {
					break // on a busy machine: the proxy would refuse them
				}
				n++
				waiting.Add(1)
				report("sent", theSingleton, 0, n)
				system.Root.RequestWithCustomSender(proxy, wrapperspb.Int64(n), newSender(system, n, &waiting))
			}
		}
	}
}

// sender is the process that has sent one message.
type sender struct {
	system  *actor.ActorSystem
	pid     *actor.PID
	n       int64
	waiting *atomic.Int64
	once    sync.Once
}

func newSender(system *actor.ActorSystem, n int64, waiting *atomic.Int64) *actor.PID {
	s := &sender{system: system, n: n, waiting: waiting}
	s.pid, _ = system.ProcessRegistry.Add(s, "sender"+system.ProcessRegistry.NextId())
	return s.pid
}

// SendUserMessage implements actor.Process.
func (s *sender) SendUserMessage(_ *actor.PID, m any) {
	switch actor.UnwrapEnvelopeMessage(m).(type) {
	case *wrapperspb.Int64Value:
		report("answered", theSingleton, 0, s.n)
	case *actor.DeadLetterResponse:
		report("refused", theSingleton, 0, s.n)
	}
	s.once.Do(func() { s.waiting.Add(-1) })
}

// SendSystemMessage implements actor.Process.
func (*sender) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (*sender) Stop(*actor.PID) {}
