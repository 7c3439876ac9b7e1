// Interop lets Redisson in Java and Lockkeeper in Go contend for the same locks, and checks
// that they exclude each other, wake each other, and leave nothing behind:
//
//	go run ./interop
//
// It needs a JDK (17 or later) and Maven for the Java driver in java/, which it builds when it
// is missing or outdated. It starts a redis-server, a cluster (-cluster), or a master with
// Sentinels (-sentinel), or uses -redis redis://…; and three more servers for the RedLock.
// Every case runs both ways: Java holds the lock and Go waits, then Go holds it and Java waits.
// The Go side runs in other processes, too: this program started again as a driver with the
// same protocol.
//
// The exit code is 0 if all cases pass.
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

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
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
	flags := flag.NewFlagSet("interop", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("redis", "", "`URL` of a Redis, also redis-cluster://…; without it, a redis-server is started")
	cluster := flags.Bool("cluster", false, "without -redis, start a cluster of three masters")
	sentinel := flags.Bool("sentinel", false, "without -redis, start a master, two replicas and three Sentinels")
	replicas := flags.Int("replicas", 2, "`how many` replicas, with -sentinel")
	version := flags.String("java-version", "", "`version` of Redisson, from 3.45 on; without it, that of java/pom.xml")
	reds := flags.String("red", "", "`URLs` of three more, with commas between them, for the RedLock; without them, they are started")
	var only []string
	flags.Func("kind", "only the `kind` of this name, as in the table; may be given more than once", func(name string) error {
		only = append(only, name)
		return nil
	})
	chosen := flags.String("case", "", "only the `case` of this name, as in the table")
	quick := flags.Bool("quick", false, "fewer rounds")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	if *url != "" {
		*cluster, *sentinel = false, false
	}
	var sentinels *sentinelSetup
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case *cluster:
		masters, err := rig.StartCluster(3, rig.Options{})
		if err != nil {
			fmt.Fprintln(stderr, "interop:", err)
			return 1
		}
		defer rig.StopAll(masters)
		var addresses []string
		for _, s := range masters {
			addresses = append(addresses, s.Addr())
		}
		*url = "redis-cluster://" + strings.Join(addresses, ",")
	case *sentinel:
		var err error
		if sentinels, err = startSentinelSetup(*replicas); err != nil {
			fmt.Fprintln(stderr, "interop:", err)
			return 1
		}
		defer sentinels.stop()
		*url = rig.SentinelURL(sentinels.sentinels)
	}
	ok, err := interop(ctx, sentinels, *url, *reds, *version, *chosen, only, *quick, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "interop:", err)
	}
	if err != nil || !ok {
		return 1
	}
	return 0
}

// interop prepares the two sides and the servers, and runs the cases.
func interop(ctx context.Context, sentinels *sentinelSetup, url, reds, version, chosen string, only []string, quick bool,
	stdout, stderr io.Writer) (ok bool, err error) {
	jar, err := jar(version, stderr)
	if err != nil {
		return false, err
	}
	urls := append([]string{url}, strings.Split(reds, ",")...)
	if reds == "" {
		urls = []string{url, "", "", ""}
	}
	var servers []server
	for _, url := range urls {
		if url == "" {
			s, err := rig.Start(rig.Options{})
			if err != nil {
				return false, err
			}
			defer s.Stop()
			url = s.URL()
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
	chosenKinds := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool {
		if len(only) == 0 { // the RedLock's servers do not depend on the topology
			return k.red && w.redis.Mode() != rueidis.ClientModeStandalone
		}
		return !slices.Contains(only, k.name)
	})
	if len(chosenKinds) < len(only) {
		return false, fmt.Errorf("not all of these are kinds: %q", only)
	}
	w.chosen, w.sentinels = chosen, sentinels
	return w.runAll(chosenKinds), nil
}
