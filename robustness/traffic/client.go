package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// Spec is what a client process is started with.
type Spec struct {
	Proc int
	// Redis is the URL of its Redis.
	Redis string
	// Others are the URLs of further servers, for locks on several servers.
	Others []string
	Seed   uint64
	Plan   Plan
	Host   Host
}

// The protocol between a client and its parent process, one line each. A client writes
// Ready. The commands are: Begin a round, with the file for its history; End it (the client
// answers Quiet); Measure (it answers with a Footprint); Profile, which writes a heap profile
// (it answers Profiled); Crash the lock actors at one message in that many (0 for none; below
// 0 twice in a row); Suspend the clock for that many milliseconds (it answers Woken); and
// Close, which ends the process.
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

// Footprint is the resources that a client uses.
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
	// others are the Systems of the further servers, and red makes locks on all servers.
	others []*lockkeeper.System
	red    *lockkeeper.RedLock
	actors *actor.ActorSystem
	peer   rueidislock.Locker // nil unless the process has busy goroutines
	// machine is the clock of the System, which can be suspended.
	machine *boottime.Suspendable
	ids     atomic.Int64
	// crashes: one message in that many panics a lock actor; 0 for none. Below 0 the next
	// message, of any type, panics too.
	crashes      atomic.Int64
	round        *round
	stoppedActor *actor.PID // of a stopped actor
	answers      io.Writer
	seen         []string   // the owners of the lock that an operator has inspected
	random       *rand.Rand // for the choices of each round
}

// round is one history.
type round struct {
	ctx     context.Context
	end     context.CancelFunc
	out     *history.Recorder
	file    string // of the history
	workers sync.WaitGroup
}

// profileRate is the number of bytes per sample of the heap profile: growth by a few MiB
// must be visible.
const profileRate = 16 << 10

// Run is the client process: it executes commands until Close.
func Run(spec Spec, commands io.Reader, answers io.Writer) error {
	runtime.MemProfileRate = profileRate
	redis, err := lockkeeper.Connect(spec.Redis)
	if err != nil {
		return err
	}
	defer redis.Close()
	c := &client{spec: spec, plan: spec.Plan, answers: answers, random: rand.New(rand.NewPCG(spec.Seed, uint64(spec.Proc)))}
	c.actors = quiet.ActorSystem()
	c.machine = boottime.Install(c.actors)
	fill(c.actors.ProcessRegistry)
	config := spec.Plan.Config()
	faultinject.Into(c.actors, c.crash)
	spec.Host.configure(&config, c.actors)
	if c.system, err = lockkeeper.New(c.actors, redis, config); err != nil {
		return err
	}
	c.stoppedActor = c.actors.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	if err := c.actors.Root.StopFuture(c.stoppedActor).Wait(); err != nil {
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
	fmt.Fprintln(answers, Ready)
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		if command == Close {
			break
		}
		if err := c.handle(command, argument); err != nil {
			return err
		}
	}
	if c.round != nil {
		c.stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, s := range append(c.others, c.system) {
		if err := s.Close(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(answers, Closed)
	return nil
}

// fill makes the registry allocate its 32,768 maps: each takes memory at its first id,
// and actors have ever new ids. The growth is bounded, and would look like a leak of 9 MB.
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

func (c *client) handle(command, argument string) error {
	switch command {
	case Begin:
		return c.begin(argument)
	case End:
		c.stop()
		fmt.Fprintln(c.answers, Quiet)
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
		fmt.Fprintln(c.answers, Woken)
	case See:
		c.see(argument)
	case Force:
		c.force(argument)
	case Measure:
		return json.NewEncoder(c.answers).Encode(c.measure())
	case Profile:
		if err := profile(argument); err != nil {
			return err
		}
		fmt.Fprintln(c.answers, Profiled)
	}
	return nil
}

// begin starts the workers.
func (c *client) begin(file string) error {
	out, err := history.Record(file)
	if err != nil {
		return err
	}
	r := &round{out: out, file: file}
	r.ctx, r.end = context.WithCancel(context.Background())
	c.round = r
	r.workers.Go(func() { c.watch(r) })
	number := 0
	work := func(style Style, do func(*worker)) {
		w := &worker{c: c, r: r, number: number, style: style, random: rand.New(rand.NewPCG(c.random.Uint64(), uint64(number)))}
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

// stop ends the round when all workers have released their holds.
func (c *client) stop() {
	c.round.end()
	c.round.workers.Wait()
	_ = c.round.out.Close() // every event is written already
	c.round = nil
}

// watch records when the process could not run, and what its goroutines do when it runs, but answers no request. A
// process does not run either while one of its threads stands still that runs a goroutine: the kernel gives it no
// processor, or it awaits a page. Others may continue, but not what waits for that goroutine, which may be the
// guardian. So the watch stops the world now and then, which takes until that thread runs; but not alongside goroutines
// that compute, where that would change how they share the processors.
func (c *client) watch(r *round) {
	const beat, late = 10 * time.Millisecond, 30 * time.Millisecond
	const stopEvery, standing = 5, 100 * time.Millisecond
	const crowd, quiet, most = 10, 150 * time.Millisecond, 30
	last, stopped, written, n := history.Now(), history.Now(), time.Duration(0), 0
	var memory runtime.MemStats
	for beats := 1; r.ctx.Err() == nil; beats++ {
		time.Sleep(beat)
		now := history.Now()
		pending, since := r.out.Silence()
		switch {
		case now-last > beat+late:
			r.out.Add(history.Event{Stage: history.Stalled, Since: last, At: now})
		case pending >= crowd && now-since > quiet && since != written && n < most:
			written, n = since, n+1
			r.writeStacks(fmt.Sprintf("%s.silent-since-%v", r.file, since))
		}
		last = now
		if c.plan.Busy.To > 0 || beats%stopEvery > 0 {
			continue
		}
		runtime.ReadMemStats(&memory)
		if last = history.Now(); last-now > standing {
			r.out.Add(history.Event{Stage: history.Stalled, Since: stopped, At: last})
		}
		stopped = last
	}
}

// writeStacks writes the stacks of all goroutines into a file next to the history. Only the histories of rounds in which
// a promise was not kept stay.
func (r *round) writeStacks(name string) {
	out, err := os.Create(name)
	if err != nil {
		return // the history goes on without it
	}
	defer out.Close()
	_ = pprof.Lookup("goroutine").WriteTo(out, 2)
}

func (c *client) measure() Footprint {
	runtime.GC()
	runtime.GC() // frees what finalizers and pools released in the first
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // cannot fail for the own process
	f := Footprint{
		Goroutines: runtime.NumGoroutine(), Heap: memory.HeapAlloc,
		CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
	}
	for _, bucket := range c.actors.ProcessRegistry.LocalPIDs.LocalPIDs {
		f.Actors += bucket.Count()
	}
	return f
}

// profile writes a heap profile to a file, for go tool pprof.
func profile(file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(out, 0), out.Close())
}
