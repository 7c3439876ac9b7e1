package locktest

// The fair lock over several real processes, and the processes that tests start.

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// Child is a process in a role.
type Child struct {
	Number int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	killed bool
	heard  sync.WaitGroup
}

// Said is a line that a child has written.
type Said struct {
	By   *Child
	Text string
}

// Spawn starts a process in a role; what it writes goes to lines. It ends with the test.
func Spawn(t *testing.T, number int, lines chan<- Said, role string, args ...string) *Child {
	t.Helper()
	c := &Child{Number: number, cmd: exec.Command(os.Args[0], args...)}
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
			lines <- Said{c, in.Text()}
		}
	})
	t.Cleanup(func() { c.end(t) })
	return c
}

// end closes the child's input, after which it leaves by itself.
func (c *Child) end(t *testing.T) {
	c.stdin.Close()
	late := time.AfterFunc(redistest.Limit, func() { _ = c.cmd.Process.Kill() })
	c.heard.Wait()
	err := c.cmd.Wait()
	if inTime := late.Stop(); !c.killed && (err != nil || !inTime) {
		t.Errorf("process %d: %v\n%s", c.Number, err, c.stderr.String())
	}
}

// Kill ends it with SIGKILL.
func (c *Child) Kill(t *testing.T) {
	t.Helper()
	c.killed = true
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.heard.Wait()
}

func (c *Child) Tell(t *testing.T, command string, number int) {
	t.Helper()
	if _, err := fmt.Fprintln(c.stdin, command, number); err != nil {
		t.Fatalf("process %d: %v\n%s", c.Number, err, c.stderr.String())
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

// InLine is how the processes are set that wait for a fair lock: a dead one costs the
// others 3 s as a waiter, and 3 s more as the holder.
var InLine = lockkeeper.Config{Watchdog: 3 * time.Second, WaiterTimeout: 3 * time.Second, Poll: 500 * time.Millisecond}

// waitInLine takes and gives back a fair lock as it is told to: "acquire 7" has waiter 7
// wait, which is "granted 7" some time, and keeps the lock until "release 7".
func waitInLine(args []string) error {
	sys, end, err := system(args[0], InLine)
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
