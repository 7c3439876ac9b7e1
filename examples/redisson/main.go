// Redisson lets Java and Go contend for the same locks, and checks that they keep each
// other out, wake each other, and leave nothing behind:
//
//	go run ./examples/redisson
//
// It needs a JDK (17 or later) and Maven for the Java driver in java/, which it builds when
// that is due, and a redis-server, which it starts, or -redis redis://…. Every case is played
// both ways: Java has the lock and Go waits, Go has it and Java waits. The Go side, too, is
// made of other processes: this program, started once more as a driver with the same protocol.
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
	"strings"
	"syscall"
	"time"

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
	url := flags.String("redis", "", "`URL` of a Redis; without it, a redis-server is started")
	version := flags.String("java-version", "", "`version` of Redisson, from 3.45 on; without it, that of java/pom.xml")
	quick := flags.Bool("quick", false, "fewer rounds")
	observed := flags.Bool("observe", false, "instead, show what Redisson does that Lockkeeper does not; on a redis-server of its own")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := interop(ctx, *url, *version, *quick, *observed, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "redisson:", err)
	}
	if err != nil || !ok {
		return 1
	}
	return 0
}

// interop prepares the two sides and a Redis, and has everything played.
func interop(ctx context.Context, url, version string, quick, observed bool, stdout, stderr io.Writer) (ok bool, err error) {
	jar, err := jar(version, stderr)
	if err != nil {
		return false, err
	}
	if url == "" || observed {
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
	w := newWorld(ctx, redis, url, jar, quick, stdout)
	defer w.close()
	if observed {
		return w.observe(), nil
	}
	return w.playAll(), nil
}

const row = "%-6s %-32s %-22s %-4s %s\n"

// playAll plays every case with every kind of lock, both ways, and prints a table.
func (w *world) playAll() (ok bool) {
	began := time.Now()
	if err := w.introduce(); err != nil {
		fmt.Fprintln(w.out, err)
		return false
	}
	fmt.Fprintf(w.out, row, "KIND", "CASE", "DIRECTION", "", "FIGURES")
	ok = true
	for _, kind := range kinds {
		for i, c := range cases {
			ways := [][2]side{{java, golang}, {golang, java}}
			if c.together {
				ways = ways[:1]
			}
			for way, sides := range ways {
				s := &scene{
					world: w, kind: kind, name: fmt.Sprintf("%s-%s-%d-%d", w.mark, kind.name, i, way),
					holding: sides[0], waiting: sides[1],
				}
				direction := fmt.Sprintf("%s holds, %s waits", s.holding.name, s.waiting.name)
				if c.together {
					direction = "both together"
				}
				result, err := "ok", s.play(c.play)
				if err != nil {
					ok, result = false, "FAIL"
					s.tell("%v", err)
					w.restart()
				}
				fmt.Fprintf(w.out, row, kind.name, c.name, direction, result, strings.Join(s.figures, "; "))
				if w.ctx.Err() != nil {
					return false
				}
			}
		}
	}
	w.complaints()
	fmt.Fprintf(w.out, "in %.0f s: %s\n", time.Since(began).Seconds(), map[bool]string{true: "all is well", false: "FAILED"}[ok])
	return ok
}

// introduce starts what the cases share, and says which versions meet.
func (w *world) introduce() error {
	s := &scene{world: w, kind: kinds[0]}
	return s.play(func(s *scene) {
		w.driver(java, short, 0) // the JVMs start at the same time
		version := s.thread("hello", java, w.driver(java, long, 0)).do("hello").values["redisson"]
		s.thread("hello", java, w.driver(java, short, 0)).do("hello")
		info, err := w.redis.Do(w.ctx, w.redis.B().Info().Section("server").Build()).ToString()
		try(err)
		_, after, _ := strings.Cut(info, "redis_version:")
		number, _, _ := strings.Cut(after, "\r\n")
		fmt.Fprintf(w.out, "Redisson %s and Lockkeeper on Redis %s\n\n", version, number)
	})
}

// complaints sums up the exceptions that Java has written to stderr.
func (w *world) complaints() {
	for _, d := range w.all {
		for name, n := range exceptions(d) {
			fmt.Fprintf(w.out, "on a driver's stderr: %d × %s\n", n, name)
		}
	}
}
