// Redisson lets Java and Go contend for the same locks, and checks that they keep each
// other out, wake each other, and leave nothing behind:
//
//	go run ./interop
//
// It needs a JDK (17 or later) and Maven for the Java driver in java/, which it builds when
// that is due, and a redis-server, which it starts, or -redis redis://…, or a -cluster, or a master
// with Sentinels (-sentinel); and three more for the RedLock. Every case is played both ways: Java has the lock and Go waits, Go has it and
// Java waits. The Go side, too, is made of other processes: this program, started once more
// as a driver with the same protocol. With -bench it compares afterwards how fast they are.
//
// The exit code is 0 if all is as it should be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
)

// driveVerb makes this program a driver.
const driveVerb = "drive"

func main() {
	if len(os.Args) > 1 && os.Args[1] == driveVerb {
		os.Exit(drive(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("redisson", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("redis", "", "`URL` of a Redis, also redis-cluster://…; without it, a redis-server is started")
	cluster := flags.Bool("cluster", false, "without -redis, start a cluster of three")
	sentinel := flags.Bool("sentinel", false, "without -redis, start a master, two replicas and three Sentinels")
	replicas := flags.Int("replicas", 2, "`how many` replicas, with -sentinel")
	toWrite := flags.Int("min-replicas-to-write", 1, "the servers' setting of that name, with -sentinel")
	pause := flags.Duration("pause", 3*time.Second, "for how long the old master of a planned failover pauses writes, with -sentinel")
	version := flags.String("java-version", "", "`version` of Redisson, from 3.45 on; without it, that of java/pom.xml")
	reds := flags.String("red", "", "`URLs` of three more, with commas between them, for the RedLock; without them, they are started")
	var only []string
	flags.Func("kind", "only the `kind` of this name, as in the table; may be given more than once", func(name string) error {
		only = append(only, name)
		return nil
	})
	chosen := flags.String("case", "", "only the `case` of this name, as in the table")
	quick := flags.Bool("quick", false, "fewer rounds")
	bench := flags.Bool("bench", false, "after the cases, compare how fast the two are")
	observed := flags.Bool("observe", false, "instead, show what Redisson does that Lockkeeper does not; on a redis-server of its own")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if *url != "" {
		*cluster, *sentinel = false, false
	}
	var guarded *watched
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case *cluster:
		of, stop, err := startCluster(3)
		if err != nil {
			fmt.Fprintln(stderr, "redisson:", err)
			return 1
		}
		defer stop()
		*url = of
	case *sentinel:
		var err error
		if guarded, err = startWatched(ctx, *replicas, *toWrite); err != nil {
			fmt.Fprintln(stderr, "redisson:", err)
			return 1
		}
		defer guarded.stop()
		guarded.pause = *pause
		*url = guarded.url
	}
	ok, err := interop(ctx, guarded, *url, *reds, *version, *chosen, only, *quick, *bench, *observed, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "redisson:", err)
	}
	if err != nil || !ok {
		return 1
	}
	return 0
}

// interop prepares the two sides and a Redis, and has everything played.
func interop(ctx context.Context, guarded *watched, url, reds, version, chosen string, only []string, quick, bench, observed bool, stdout, stderr io.Writer) (ok bool, err error) {
	jar, err := jar(version, stderr)
	if err != nil {
		return false, err
	}
	if observed {
		url = ""
	}
	urls := append([]string{url}, strings.Split(reds, ",")...)
	if reds == "" {
		urls = []string{url, "", "", ""}
	}
	var servers []server
	for _, url := range urls {
		if url == "" {
			var stop func()
			if url, stop, err = startServer(); err != nil {
				return false, err
			}
			defer stop()
		}
		redis, err := lockkeeper.Connect(url)
		if err != nil {
			return false, err
		}
		defer redis.Close()
		servers = append(servers, server{redis, url})
	}
	w := newWorld(ctx, servers[0], servers[1:], jar, quick, stdout)
	defer w.close()
	if observed {
		return w.observe(), nil
	}
	played := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
		if len(only) == 0 { // the RedLock's servers are the same wherever the other locks are
			return k.red && w.redis.Mode() != rueidis.ClientModeStandalone
		}
		return !slices.Contains(only, k.name)
	})
	if len(played) < len(only) {
		return false, fmt.Errorf("not all of these are kinds: %q", only)
	}
	w.chosen, w.guarded = chosen, guarded
	ok = w.playAll(played)
	return ok && (!bench || w.compare()), nil
}
