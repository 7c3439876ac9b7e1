package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
)

// goDriver is the Go counterpart of the Java driver: it serves the same protocol with Lockkeeper.
// A thread of the protocol is a goroutine, which re-enters the locks that it holds.
type goDriver struct {
	clients []client
	red     *lockkeeper.RedLock // on all of them, if they are three or more

	mu  sync.Mutex
	out io.Writer
}

// client is one of a driver's clients, with its Redis.
type client struct {
	redis rueidis.Client
	locks *lockkeeper.System
}

// drive runs a driver until its stdin ends.
func drive(args []string, in io.Reader, out, stderr io.Writer) int {
	flags := flag.NewFlagSet("drive", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var urls []string
	flags.Func("redis", "", func(url string) error {
		urls = append(urls, url)
		return nil
	})
	watchdog := flags.Int("watchdog", 30_000, "")
	// A lock granted within a minute was not granted by a poll.
	poll := flags.Int("poll", 60_000, "")
	if flags.Parse(args) != nil {
		return 2
	}
	config := lockkeeper.Config{
		Watchdog: milliseconds(*watchdog), Poll: milliseconds(*poll), WaiterTimeout: milliseconds(3 * *poll), Anonymous: true,
	}
	if err := driveOn(urls, config, in, out); err != nil {
		fmt.Fprintln(stderr, "drive:", err)
		return 1
	}
	return 0
}

func driveOn(urls []string, config lockkeeper.Config, in io.Reader, out io.Writer) error {
	t := &goDriver{out: out}
	system := quiet.ActorSystem()
	var systems []*lockkeeper.System
	for _, url := range urls {
		redis, err := lockkeeper.Connect(url)
		if err != nil {
			return err
		}
		defer redis.Close()
		locks, err := lockkeeper.New(system, redis, config)
		if err != nil {
			return err
		}
		t.clients, systems = append(t.clients, client{redis, locks}), append(systems, locks)
	}
	if len(systems) >= 3 {
		var err error
		if t.red, err = lockkeeper.NewRedLock(systems...); err != nil {
			return err
		}
	}
	select {
	case <-t.serve(in):
	case <-time.After(5 * time.Second): // a thread waits for a lock, or for a loss
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var wrong error
	for _, locks := range systems {
		wrong = errors.Join(wrong, locks.Close(ctx))
	}
	return wrong
}

// serve reads requests to the end; done is closed when they are answered.
func (t *goDriver) serve(in io.Reader) (done chan struct{}) {
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
				w := worker{goDriver: t, holds: map[string][]held{}, taken: map[string]*lockkeeper.Permit{}}
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

func (t *goDriver) answer(l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out, l)
}
