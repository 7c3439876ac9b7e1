package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/quiet"
)

// twin is the Go twin of the Java driver: the same protocol, with Lockkeeper behind it.
// A thread of the protocol is a goroutine, which re-enters the locks that it has.
type twin struct {
	redis rueidis.Client
	locks *lockkeeper.System

	mu  sync.Mutex
	out io.Writer
}

// drive runs a twin until its stdin ends.
func drive(args []string, in io.Reader, out, stderr io.Writer) int {
	flags := flag.NewFlagSet("drive", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("redis", "redis://127.0.0.1:6379", "")
	watchdog := flags.Int("watchdog", 30_000, "")
	if flags.Parse(args) != nil {
		return 2
	}
	if err := driveOn(*url, milliseconds(*watchdog), in, out); err != nil {
		fmt.Fprintln(stderr, "drive:", err)
		return 1
	}
	return 0
}

func driveOn(url string, watchdog time.Duration, in io.Reader, out io.Writer) error {
	client, err := lockkeeper.Connect(url)
	if err != nil {
		return err
	}
	defer client.Close()
	locks, err := lockkeeper.New(quiet.ActorSystem(), client, lockkeeper.Config{
		Watchdog: watchdog,
		Poll:     time.Minute, // whoever gets a lock sooner than that has not polled for it
	})
	if err != nil {
		return err
	}
	t := &twin{redis: client, locks: locks, out: out}
	select {
	case <-t.serve(in):
	case <-time.After(5 * time.Second): // somebody waits for a lock, or for a loss
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return locks.Close(ctx)
}

// serve reads requests to the end; done is closed when they are answered.
func (t *twin) serve(in io.Reader) (done chan struct{}) {
	threads := map[string]chan line{}
	var working sync.WaitGroup
	for lines := bufio.NewScanner(in); lines.Scan(); {
		request, err := parseLine(lines.Text())
		if err != nil {
			t.answer(line{id: "0", word: "err", values: map[string]string{"class": "protocol", "message": err.Error()}})
			continue
		}
		name := request.values["thread"]
		if threads[name] == nil {
			requests := make(chan line, 100)
			threads[name] = requests
			working.Go(func() {
				w := worker{twin: t, holds: map[string][]*lockkeeper.Hold{}}
				for request := range requests {
					t.answer(w.answer(request))
				}
			})
		}
		threads[name] <- request
	}
	for _, requests := range threads {
		close(requests)
	}
	done = make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	return done
}

func (t *twin) answer(l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out, l)
}

// worker is a thread of the protocol.
type worker struct {
	*twin
	holds map[string][]*lockkeeper.Hold // by kind and name of the lock, the inner ones last
}

func (w *worker) answer(request line) line {
	answer := line{id: request.id, word: "ok", values: map[string]string{}}
	if err := w.do(request, answer); err != nil {
		return line{id: request.id, word: "err", values: map[string]string{"class": class(err), "message": err.Error()}}
	}
	return answer
}

// classes are the errors that the cases tell apart. The error of a lost lock may be others, too.
var classes = []struct {
	name string
	err  error
}{
	{"ErrLost", lockkeeper.ErrLost},
	{"ErrNotHeld", lockkeeper.ErrNotHeld},
	{"ErrUnavailable", lockkeeper.ErrUnavailable},
	{"ErrClosed", lockkeeper.ErrClosed},
}

func class(err error) string {
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "error"
}

func (w *worker) do(request, answer line) error {
	values := request.values
	if request.word == "hello" {
		answer.set("client="+w.locks.ID(), fmt.Sprint("pid=", os.Getpid()))
		return nil
	}
	i := 0
	for i < len(kinds) && kinds[i].name != values["kind"] {
		i++
	}
	if i == len(kinds) {
		return fmt.Errorf("unknown kind: %q", values["kind"])
	}
	lock, key := kinds[i].open(w.locks, values["name"]), values["kind"]+" "+values["name"]
	var hold *lockkeeper.Hold // the innermost
	if n := len(w.holds[key]); n > 0 {
		hold = w.holds[key][n-1]
	}

	ctx := context.Background()
	switch request.word {
	case "lock", "trylock":
		options, err := options(request)
		if err != nil {
			return err
		}
		if hold != nil {
			ctx = hold.Context() // re-enters
		}
		began := time.Now()
		hold, err := lock.Acquire(ctx, options...)
		answer.set(at(), fmt.Sprint("nanos=", time.Since(began).Nanoseconds()), fmt.Sprint("held=", err == nil))
		if errors.Is(err, lockkeeper.ErrHeld) || errors.Is(err, lockkeeper.ErrTimeout) {
			return nil
		}
		if err == nil {
			w.holds[key] = append(w.holds[key], hold)
		}
		return err

	case "unlock":
		if hold == nil {
			return lockkeeper.ErrNotHeld
		}
		w.holds[key] = w.holds[key][:len(w.holds[key])-1]
		answer.set(at())
		return hold.Release(ctx)

	case "lost": // waits until the holder is told so; Java has nothing like it
		if hold == nil {
			return lockkeeper.ErrNotHeld
		}
		<-hold.Context().Done()
		why := context.Cause(hold.Context())
		answer.set(at(), "class="+class(why), "message="+why.Error())
		return nil

	case "count":
		answer.set(fmt.Sprint("count=", len(w.holds[key])))
		return nil

	case "force":
		was, err := lock.ForceRelease(ctx)
		answer.set(fmt.Sprint("was=", was))
		return err

	case "islocked", "ttl", "inspect": // "inspect" is ours: Redisson cannot tell the count of another's lock
		s, err := lock.Inspect(ctx)
		answer.set(fmt.Sprint("locked=", s.Locked), fmt.Sprint("ttl=", s.TTL.Milliseconds()), fmt.Sprint("count=", s.HoldCount), "holder="+s.Holder)
		return err

	case "rmw":
		rounds, err := strconv.Atoi(values["rounds"])
		if err != nil {
			return err
		}
		pause, _ := strconv.Atoi(values["pause"]) // after each round, if it is given; Java has no such key
		began := time.Now()
		for range rounds {
			if err := w.addOne(ctx, lock, values["key"]); err != nil {
				return err
			}
			time.Sleep(milliseconds(pause))
		}
		answer.set(fmt.Sprint("rounds=", rounds), fmt.Sprint("micros=", time.Since(began).Microseconds()))
		return nil
	}
	return fmt.Errorf("unknown verb: %q", request.word)
}

// addOne adds 1 to a key by a GET and a SET, which is right only if everybody else is kept away.
func (w *worker) addOne(ctx context.Context, lock lock, key string) error {
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	n, err := w.redis.Do(ctx, w.redis.B().Get().Key(key).Build()).AsInt64()
	if err == nil || rueidis.IsRedisNil(err) {
		err = w.redis.Do(ctx, w.redis.B().Set().Key(key).Value(strconv.FormatInt(n+1, 10)).Build()).Error()
	}
	return errors.Join(err, hold.Release(ctx))
}

// options are those of a lock or a trylock; without wait= the latter tries once.
func options(request line) (options []lockkeeper.Option, err error) {
	number := func(key string) time.Duration {
		n, wrong := strconv.Atoi(request.values[key])
		err = errors.Join(err, wrong)
		return milliseconds(n)
	}
	if request.values["lease"] != "" {
		options = append(options, lockkeeper.WithLease(number("lease")))
	}
	switch {
	case request.values["wait"] != "":
		options = append(options, lockkeeper.WithWait(number("wait")))
	case request.word == "trylock":
		options = append(options, lockkeeper.WithWait(0))
	}
	return options, err
}

// at is the time now, as the drivers tell it.
func at() string { return fmt.Sprint("at=", time.Now().UnixMicro()) }

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
