// Redlock shows a lock on the majority of five independent Redis servers: it is held on
// while two of them are killed, and lost, with word to its holder, when a third one goes.
//
//	go run ./examples/redlock
//
// starts five servers of its own, for which redis-server must be installed. With -redis
// redis://… for each of 3 or 5 servers the same happens there, but for the killing. A
// server that has not been watched for a watchdog's time may have forgotten locks, and has
// no vote: so the program begins with a wait of some seconds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
)

const (
	prefix   = "redlock-example:"
	patience = 30 * time.Second // how long anything may take before it has gone wrong
	number   = 5
	watchdog = 3 * time.Second // the default of 30 s would be a long wait
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("redlock", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var servers []*server
	flags.Func("redis", "`URL` of one of the servers; give it for each of them", func(url string) error {
		servers = append(servers, &server{url: url})
		return nil
	})
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if err := play(servers, stdout); err != nil {
		fmt.Fprintln(stderr, "redlock:", err)
		return 1
	}
	return 0
}

func play(servers []*server, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ours := len(servers) == 0
	if ours {
		if servers, err = startServers(number); err != nil {
			return err
		}
		defer stopServers(servers)
	}
	anna, err := join(ctx, servers)
	if err != nil {
		return err
	}
	defer anna.leave()
	bert, err := join(ctx, servers)
	if err != nil {
		return err
	}
	defer bert.leave()

	began := time.Now()
	hold, err := anna.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "anna has the lock on %d servers, after %v in which they had no vote yet\n", len(servers), time.Since(began).Round(100*time.Millisecond))
	if _, err := bert.lock.TryAcquire(ctx); !errors.Is(err, lockkeeper.ErrHeld) {
		return fmt.Errorf("bert beside anna: %w", err)
	}
	fmt.Fprintln(out, "bert does not get it")
	if ours {
		if hold, err = minorityDies(ctx, servers, hold, bert.lock, out); err != nil {
			return err
		}
		return majorityDies(ctx, servers, hold, anna.lock, out)
	}
	if err := hold.Release(ctx); err != nil {
		return err
	}
	if hold, err = bert.lock.Acquire(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "anna gives it back, and bert has it")
	return hold.Release(ctx)
}

// minorityDies: three of five go on as if nothing had happened. It gives bert's hold.
func minorityDies(ctx context.Context, servers []*server, hold *lockkeeper.Hold, bert *lockkeeper.Lock, out io.Writer) (*lockkeeper.Hold, error) {
	servers[0].kill()
	servers[3].kill()
	select {
	case <-hold.Context().Done():
		return nil, fmt.Errorf("with 2 of 5 killed: %w", context.Cause(hold.Context()))
	case <-time.After(watchdog): // after which nothing is left of what they had confirmed
	}
	fmt.Fprintln(out, "2 servers are killed: anna's lease is renewed by the other 3")
	if err := hold.Release(ctx); err != nil {
		return nil, err
	}
	next, err := bert.Acquire(ctx)
	if err == nil {
		fmt.Fprintln(out, "anna gives it back, and bert has it")
	}
	return next, err
}

// majorityDies: nobody can have the lock, and who has it is told in time.
func majorityDies(ctx context.Context, servers []*server, hold *lockkeeper.Hold, anna *lockkeeper.Lock, out io.Writer) error {
	servers[4].kill()
	select {
	case <-hold.Context().Done():
	case <-ctx.Done():
		return errors.New("bert was not told that the lock is lost")
	}
	why := context.Cause(hold.Context())
	if !errors.Is(why, lockkeeper.ErrLost) {
		return fmt.Errorf("bert is told: %w", why)
	}
	fmt.Fprintf(out, "a third one is killed: bert is told\n  %v\n", why)
	_, err := anna.TryAcquire(ctx)
	for errors.Is(err, lockkeeper.ErrHeld) { // by bert, on the two that live, until his lease is over there too
		time.Sleep(watchdog / 10)
		_, err = anna.TryAcquire(ctx)
	}
	if !errors.Is(err, lockkeeper.ErrUnavailable) {
		return fmt.Errorf("with 3 of 5 killed: %w", err)
	}
	fmt.Fprintf(out, "and anna\n  %v\n", err)
	return nil
}

// process is one that uses the lock: it has a System on each server.
type process struct {
	clients []rueidis.Client
	systems []*lockkeeper.System
	lock    *lockkeeper.Lock
}

func join(ctx context.Context, servers []*server) (*process, error) {
	p, actors := &process{}, quiet.ActorSystem()
	fail := func(err error) (*process, error) {
		p.leave()
		return nil, err
	}
	for _, s := range servers {
		client, err := connect(ctx, s.url)
		if err != nil {
			return fail(err)
		}
		p.clients = append(p.clients, client)
		system, err := lockkeeper.New(actors, client, lockkeeper.Config{KeyPrefix: prefix, Watchdog: watchdog})
		if err != nil {
			return fail(err)
		}
		p.systems = append(p.systems, system)
	}
	red, err := lockkeeper.RedLock(p.systems...)
	if err != nil {
		return fail(err)
	}
	p.lock = red.Lock("till")
	return p, nil
}

// connect waits for a server that has just been started.
func connect(ctx context.Context, url string) (rueidis.Client, error) {
	for {
		client, err := lockkeeper.Connect(url)
		if err == nil || !errors.Is(err, lockkeeper.ErrUnavailable) || ctx.Err() != nil {
			return client, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// leave ends the process. What servers that are gone do not confirm is left to expire.
func (p *process) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, system := range p.systems {
		_ = system.Close(ctx)
	}
	for _, client := range p.clients {
		client.Close()
	}
}
