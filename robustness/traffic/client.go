package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis/rueidislock"
	"golang.org/x/sys/unix"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// Spec is what a client process is started with.
type Spec struct {
	Proc int
	// Redis is the URL of its Redis.
	Redis string
	// Others are those of further servers, for locks on several.
	Others []string
	Seed   uint64
	Plan   Plan
	Host   Host
}

// The protocol between a client and who has started it, line by line. A client says
// Ready; it is told to begin a round, with the file for its history, to end it (it says
// Quiet), to measure itself (it answers with a Footprint), to write down what its memory
// is used for (it says Profiled), to crash its lock actors (one message in so many, 0 for
// none; below 0 twice in a row), to have slept for so many
// milliseconds (it says Woken), and to close, which is its end.
const (
	Ready    = "ready"
	Begin    = "begin"
	End      = "end"
	Quiet    = "quiet"
	Measure  = "measure"
	Profile  = "profile"
	Profiled = "profiled"
	Crash    = "crash"
	Suspend  = "suspend"
	Woken    = "woken"
	Close    = "close"
	Closed   = "closed"
)

// Footprint is what a client takes up.
type Footprint struct {
	Goroutines int           `json:"goroutines"`
	Actors     int           `json:"actors"`
	Heap       uint64        `json:"heap"` // live bytes after a collection
	CPU        time.Duration `json:"cpu"`  // used so far
}

type client struct {
	spec   Spec
	plan   Plan
	system *lockkeeper.System
	// others are on the further servers, and red makes locks on all of them.
	others []*lockkeeper.System
	red    *lockkeeper.RedLock
	actors *actor.ActorSystem
	peer   rueidislock.Locker // nil unless the process computes
	// machine is the clock of the System, which can be suspended.
	machine *boottime.Suspendable
	ids     atomic.Int64
	// crashes: one message to a lock actor in so many panics; 0 for none. Below 0 it is
	// one in that many, and the next message too, of whatever type.
	crashes atomic.Int64
	round   *round
	taken   *lockkeeper.Hold // by Take
	gone    *actor.PID       // of an actor that has stopped
	say     io.Writer
	seen    []string   // the owners of the lock that an operator has looked at
	random  *rand.Rand // of what is drawn for each round
}

// round is one history.
type round struct {
	ctx     context.Context
	end     context.CancelFunc
	out     *history.Recorder
	workers sync.WaitGroup
}

// profileRate is how many bytes of memory there are to a sample of the heap's profile: a
// process that has grown by a few MiB must show where.
const profileRate = 16 << 10

// Run is the client process: it does as it is told, until it is told to close.
func Run(spec Spec, orders io.Reader, say io.Writer) error {
	runtime.MemProfileRate = profileRate
	redis, err := lockkeeper.Connect(spec.Redis)
	if err != nil {
		return err
	}
	defer redis.Close()
	c := &client{spec: spec, plan: spec.Plan, say: say, random: rand.New(rand.NewPCG(spec.Seed, uint64(spec.Proc)))}
	silent := slog.New(slog.DiscardHandler)
	c.actors = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return silent }))
	c.machine = boottime.Install(c.actors)
	fill(c.actors.ProcessRegistry)
	config := spec.Plan.Config()
	faultinject.Into(c.actors, c.crash)
	spec.Host.into(&config, c.actors)
	if c.system, err = lockkeeper.New(c.actors, redis, config); err != nil {
		return err
	}
	c.gone = c.actors.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	if err := c.actors.Root.StopFuture(c.gone).Wait(); err != nil {
		return err
	}
	if err := c.spread(config); err != nil {
		return err
	}
	if c.plan.Busy.To > 0 {
		if err := c.computing(); err != nil {
			return err
		}
		defer c.peer.Close()
	}
	fmt.Fprintln(say, Ready)
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		order, argument, _ := strings.Cut(lines.Text(), " ")
		if order == Close {
			break
		}
		if err := c.obey(order, argument); err != nil {
			return err
		}
	}
	if c.round != nil {
		c.stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, s := range append(c.others, c.system) {
		if err := s.Close(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(say, Closed)
	return nil
}

// fill has the registry allocate what it keeps for good: each of its 32,768 maps takes
// memory at the first id that falls to it, and ids of actors never come again. That is
// bounded, and would look like a leak of 9 MB.
func fill(registry *actor.ProcessRegistryValue) {
	for _, bucket := range registry.LocalPIDs.LocalPIDs {
		filled := map[any]bool{}
		for n := 0; len(filled) < len(bucket); n++ {
			id := strconv.Itoa(n)
			filled[bucket.GetShard(id)] = true
			bucket.Set(id, nil)
			bucket.Remove(id)
		}
	}
}

func (c *client) obey(order, argument string) error {
	switch order {
	case Begin:
		return c.begin(argument)
	case End:
		c.stop()
		fmt.Fprintln(c.say, Quiet)
	case Crash:
		var n int64
		if _, err := fmt.Sscan(argument, &n); err != nil {
			return err
		}
		c.crashes.Store(n)
	case Suspend:
		var n int64
		if _, err := fmt.Sscan(argument, &n); err != nil {
			return err
		}
		c.machine.Suspend(time.Duration(n) * time.Millisecond)
		fmt.Fprintln(c.say, Woken)
	case Take:
		return c.take(argument)
	case Write:
		c.write(argument)
	case See:
		c.see(argument)
	case Force:
		c.force(argument)
	case Measure:
		return json.NewEncoder(c.say).Encode(c.measure())
	case Profile:
		if err := profile(argument); err != nil {
			return err
		}
		fmt.Fprintln(c.say, Profiled)
	}
	return nil
}

// begin starts the workers.
func (c *client) begin(file string) error {
	out, err := history.Record(file)
	if err != nil {
		return err
	}
	r := &round{out: out}
	r.ctx, r.end = context.WithCancel(context.Background())
	c.round = r
	r.workers.Go(func() { c.watch(r) })
	number := 0
	work := func(style Style, do func(*worker)) {
		w := &worker{c: c, r: r, number: number, style: style, random: rand.New(rand.NewPCG(c.spec.Seed, uint64(c.spec.Proc*1000+number)))}
		r.workers.Go(func() { do(w) })
	}
	if c.plan.Operator && c.spec.Proc == 1 {
		return nil
	}
	work(Style{Think: Range{To: 3 * time.Second}}, (*worker).changePermits)
	for _, style := range c.plan.Styles {
		for range style.Workers {
			number++
			work(style, (*worker).run)
		}
	}
	r.compute(c.plan.Busy.Pick(c.random))
	return nil
}

// stop ends the round when all workers have given back what they hold.
func (c *client) stop() {
	c.round.end()
	c.round.workers.Wait()
	_ = c.round.out.Close() // every event was written already
	c.round = nil
}

// watch notes when the process could not run.
func (c *client) watch(r *round) {
	const beat, late = 10 * time.Millisecond, 30 * time.Millisecond
	last := history.Now()
	for r.ctx.Err() == nil {
		time.Sleep(beat)
		now := history.Now()
		if now-last > beat+late {
			r.out.Add(history.Event{Stage: history.Stalled, Since: last, At: now})
		}
		last = now
	}
}

func (c *client) measure() Footprint {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go at the first
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // cannot fail for oneself
	f := Footprint{
		Goroutines: runtime.NumGoroutine(), Heap: memory.HeapAlloc,
		CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
	}
	for _, bucket := range c.actors.ProcessRegistry.LocalPIDs.LocalPIDs {
		f.Actors += bucket.Count()
	}
	return f
}

// profile writes the heap's profile to a file, for go tool pprof.
func profile(file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(out, 0), out.Close())
}
