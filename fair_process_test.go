package lockkeeper_test

// The fair lock over several real processes, and the processes that tests start.

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// roles are what this program can be instead of a test, when a test starts it.
var roles = map[string]func(args []string) error{"fair": waitInLine, "readwrite": readAndWrite}

const roleVariable = "LOCKKEEPER_TEST_ROLE"

// playRole plays the role that a test has started this process for, and exits.
func playRole() {
	role := roles[os.Getenv(roleVariable)]
	if role == nil {
		return
	}
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a process in a role.
type child struct {
	number int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	killed bool
	heard  sync.WaitGroup
}

// said is a line that a child has written.
type said struct {
	by   *child
	text string
}

// spawn starts a process in a role; what it writes goes to lines. It ends with the test.
func spawn(t *testing.T, number int, lines chan<- said, role string, args ...string) *child {
	t.Helper()
	c := &child{number: number, cmd: exec.Command(os.Args[0], args...)}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	c.cmd.Stderr = &c.stderr
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.heard.Go(func() {
		for in := bufio.NewScanner(stdout); in.Scan(); {
			lines <- said{c, in.Text()}
		}
	})
	t.Cleanup(func() { c.end(t) })
	return c
}

// end closes the child's input, after which it leaves by itself.
func (c *child) end(t *testing.T) {
	c.stdin.Close()
	late := time.AfterFunc(redistest.Limit, func() { _ = c.cmd.Process.Kill() })
	c.heard.Wait()
	err := c.cmd.Wait()
	if inTime := late.Stop(); !c.killed && (err != nil || !inTime) {
		t.Errorf("process %d: %v\n%s", c.number, err, c.stderr.String())
	}
}

// kill ends it with SIGKILL.
func (c *child) kill(t *testing.T) {
	t.Helper()
	c.killed = true
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.heard.Wait()
}

func (c *child) tell(t *testing.T, command string, number int) {
	t.Helper()
	if _, err := fmt.Fprintln(c.stdin, command, number); err != nil {
		t.Fatalf("process %d: %v\n%s", c.number, err, c.stderr.String())
	}
}

// system is a System for a process in a role.
func system(url string, cfg lockkeeper.Config) (sys *lockkeeper.System, end func(), err error) {
	client, err := lockkeeper.Connect(url)
	if err != nil {
		return nil, nil, err
	}
	if sys, err = lockkeeper.New(actor.NewActorSystem(), client, cfg); err != nil {
		client.Close()
		return nil, nil, err
	}
	return sys, func() {
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		_ = sys.Close(ctx)
		client.Close()
	}, nil
}

// inLine is how the processes are set that wait for a fair lock: a dead one costs the
// others 3 s as a waiter, and 3 s more as the holder.
var inLine = lockkeeper.Config{Watchdog: 3 * time.Second, WaiterTimeout: 3 * time.Second, Poll: 500 * time.Millisecond}

// waitInLine takes and gives back a fair lock as it is told to: "acquire 7" has waiter 7
// wait, which is "granted 7" some time, and keeps the lock until "release 7".
func waitInLine(args []string) error {
	sys, end, err := system(args[0], inLine)
	if err != nil {
		return err
	}
	defer end()
	lock, ctx := sys.FairLock(args[1]), context.Background()
	var mu sync.Mutex
	holds := map[int]*lockkeeper.Hold{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var command string
		var number int
		if _, err := fmt.Sscan(in.Text(), &command, &number); err != nil {
			return err
		}
		if command == "acquire" {
			go func() {
				hold, err := lock.Acquire(ctx)
				mu.Lock()
				defer mu.Unlock()
				if holds[number] = hold; err != nil {
					fmt.Println("failed", number, err)
					return
				}
				fmt.Println("granted", number)
			}()
			continue
		}
		mu.Lock()
		hold := holds[number]
		mu.Unlock()
		if err := hold.Release(ctx); err != nil {
			fmt.Println("failed", number, err)
		}
	}
	return nil
}

func TestFairOrderOverProcesses(t *testing.T) {
	const processes, each, at = 4, 25, 40
	// A busy machine may need a while; a wait of its own for each of a dead process's
	// entries would take longer than that.
	const patience = 10 * time.Second
	for what, fate := range map[string]struct {
		dies, holds bool
		bound       time.Duration
	}{
		"all live":          {false, false, patience},
		"a waiter's killed": {true, false, inLine.WaiterTimeout + patience},
		"a holder's killed": {true, true, inLine.WaiterTimeout + inLine.Watchdog + patience},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Shared(t))
			lines := make(chan said, processes*each)
			var children []*child
			var line []*child // whose waiter has which place
			for i := range processes {
				children = append(children, spawn(t, i, lines, "fair", k.server.URL(), k.lock))
				line = append(line, slices.Repeat(children[i:], each)...)
			}
			rand.Shuffle(len(line), func(i, j int) { line[i], line[j] = line[j], line[i] })
			k.takeAs(t, redisson, time.Minute)
			for i, c := range line {
				c.tell(t, "acquire", i)
				k.awaitLine(t, i+1)
			}
			k.pass(t)

			var victim *child
			var died time.Time
			var longest, gap time.Duration
			served, last := 0, time.Now()
			for i, c := range line {
				if c == victim {
					continue
				}
				next := await(t, fmt.Sprintf("the grant of waiter %d", i), lines)
				if next.by != c || next.text != fmt.Sprint("granted ", i) {
					t.Fatalf("process %d: %q, when it was the turn of waiter %d of process %d", next.by.number, next.text, i, c.number)
				}
				if owners := k.owners(t); len(owners) != 1 {
					t.Errorf("granted to waiter %d, and held by %v", i, owners)
				}
				gap = time.Since(last)
				longest = max(longest, gap)
				served++
				if victim == nil && fate.dies && i >= at {
					victim, died = c, time.Now()
					if !fate.holds { // another one goes instead of the holder
						victim = children[(c.number+1)%processes]
					}
					victim.kill(t)
				}
				if last = time.Now(); c != victim {
					c.tell(t, "release", i)
				}
			}
			if longest > fate.bound {
				t.Errorf("nobody had the lock for %v, more than %v", longest, fate.bound)
			}
			if fate.dies {
				if total := time.Since(died); total > fate.bound {
					t.Errorf("the death held up the queue for %v in all, more than %v", total, fate.bound)
				}
				t.Logf("served %d, longest gap %v, all after the death within %v", served, longest, time.Since(died))
			} else {
				t.Logf("served %d in order, longest gap %v", served, longest)
			}
			k.awaitNothing(t)
			select {
			case more := <-lines:
				if !strings.HasPrefix(more.text, "granted") || more.by != victim {
					t.Errorf("process %d: %q", more.by.number, more.text)
				}
			default:
			}
		})
	}
}
