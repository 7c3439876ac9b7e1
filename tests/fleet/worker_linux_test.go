package fleet_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
)

// settings are those of a worker, in its environment.
type settings struct {
	role      string // candidate or sender; of grains, host or caller
	redis     string
	port      int    // of the remote; 0: any
	advertise string // the address under which other nodes reach it, if it is another one
	watchdog  time.Duration
	rate      int           // of a sender, bursts a second; of a caller, goroutines
	burst     int           // of a sender, messages a burst; of a caller, grains
	handling  time.Duration // of a candidate or host, the time for each message
	stopping  time.Duration // of a candidate or grain, the time to stop
}

func (s settings) environment() []string {
	return append(os.Environ(), "FLEET_WORKER="+fmt.Sprintf("%s %s %d %s %d %d %d %d %d", s.role, s.redis, s.port, s.advertise+"-", s.watchdog, s.rate, s.burst, s.handling, s.stopping))
}

func readSettings(text string) (s settings) {
	if _, err := fmt.Sscan(text, &s.role, &s.redis, &s.port, &s.advertise, (*int64)(&s.watchdog), &s.rate, &s.burst, (*int64)(&s.handling), (*int64)(&s.stopping)); err != nil {
		panic(err)
	}
	s.advertise = s.advertise[:len(s.advertise)-1]
	return s
}

// report writes an event for the judge: the time, which all processes share, what happens, and a number.
func report(what string, n int64) {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	reporting.Lock()
	defer reporting.Unlock()
	fmt.Printf("%d %s %d\n", now.Nano(), what, n) // one write: it is in the pipe even if the process is killed next
}

var reporting sync.Mutex

const name = "fleet"

// work is the main function of a worker. It ends with SIGTERM.
func work(s settings) {
	if s.role == "host" || s.role == "caller" {
		workGrains(s)
		return
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	logger := slog.New(quiet{slog.NewTextHandler(os.Stderr, nil)})
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	var options []remote.ConfigOption
	if s.advertise != "" {
		options = append(options, remote.WithAdvertisedHost(s.advertise))
	}
	node := remote.NewRemote(system, remote.Configure("127.0.0.1", s.port, options...))
	node.Start()
	locks, err := lockkeeper.Open(context.Background(), s.redis, lockkeeper.WithActorSystem(system), lockkeeper.WithConfig(lockkeeper.Config{Watchdog: s.watchdog}))
	if err != nil {
		panic(err)
	}
	singleton := locks.Singleton(name)
	switch s.role {
	case "candidate":
		candidate := system.Root.Spawn(singleton.Props(s.child))
		report("ready", 0)
		<-terminated
		report("stopping", 0)
		_ = system.Root.StopFuture(candidate).Wait()
	case "sender":
		proxy := system.Root.Spawn(singleton.Proxy(lockkeeper.WithWait(time.Minute)))
		report("ready", 0)
		s.send(system, proxy, terminated)
		_ = system.Root.StopFuture(proxy).Wait()
	}
	if err := locks.Close(context.Background()); err != nil {
		panic(err)
	}
	<-time.After(100 * time.Millisecond) // for the last answers: a remote that is shut down drops them
	node.Shutdown(true)
}

// quiet leaves out the log of proto.actor, whose remote logs each broken connection.
type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	ours := false
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "grains" { // they have stopped too late
			report("overrun", a.Value.Int64())
		}
		ours = ours || a.Key == "singleton" || a.Key == "lock" || a.Key == "grain" || a.Key == "grains"
		return true
	})
	if !ours {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// child returns the props of the instance, which answers with what it is sent.
func (s settings) child(term context.Context) *actor.Props {
	token := lockkeeper.HoldFrom(term).Token()
	return actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			report("started", token)
		case *actor.Stopped:
			<-time.After(s.stopping)
			report("stopped", token)
		case *wrapperspb.Int64Value:
			report("begins-"+strconv.FormatInt(token, 10), m.Value)
			<-time.After(s.handling)
			ctx.Respond(m)
		}
	})
}

// send sends numbers until it is terminated, and waits until all of them are answered or refused, for at most 20 s.
func (s settings) send(system *actor.ActorSystem, proxy *actor.PID, terminated <-chan os.Signal) {
	var waiting atomic.Int64
	ticker := time.NewTicker(time.Second / time.Duration(s.rate))
	defer ticker.Stop()
	n := int64(0)
	for {
		select {
		case <-terminated:
			for deadline := time.Now().Add(20 * time.Second); waiting.Load() > 0 && time.Now().Before(deadline); {
				<-time.After(10 * time.Millisecond)
			}
			return
		case <-ticker.C:
			for range s.burst {
				if waiting.Load() > 500 {
					break // on a busy machine: the proxy would refuse them
				}
				n++
				waiting.Add(1)
				report("sent", n)
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
		report("answered", s.n)
	case *actor.DeadLetterResponse:
		report("refused", s.n)
	}
	s.once.Do(func() { s.waiting.Add(-1) })
}

// SendSystemMessage implements actor.Process.
func (*sender) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (*sender) Stop(*actor.PID) {}

// events reads what a worker reports.
func events(lines *bufio.Scanner, to func(event)) {
	for lines.Scan() {
		var e event
		if _, err := fmt.Sscan(lines.Text(), &e.at, &e.what, &e.n); err != nil {
			e = event{what: "unreadable: " + lines.Text()}
		}
		to(e)
	}
}
