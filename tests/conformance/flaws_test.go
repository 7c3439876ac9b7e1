package conformance_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/tests/conformance/suite"
)

// flawVariable names, in the environment, the flaw that every client has; see TestFlawsAreFound.
const flawVariable = "CONFORMANCE_FLAW"

// A suite that cannot fail proves nothing: each flaw turns these cases red.
func TestFlawsAreFound(t *testing.T) {
	for flaw, finders := range map[string][]string{
		"no exclusion":              {"mutual exclusion", "a try", "a hold is kept beyond its TTL"},
		"a lease without an end":    {"a fixed lease ends and is told"},
		"loss is silent":            {"a fixed lease ends and is told", "a client is closed"},
		"last come, first served":   {"granted in order"},
		"who has left still waits":  {"a wait that is over", "cancelled while waiting", "cancelled when granted"},
		"a late release frees":      {"a late release does not free the next holder's lock", "a second release does not free the next holder's lock"},
		"a close without a release": {"a client is closed"},
		"a goroutine is left":       {"nothing is left in the process"},
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			for i, name := range finders {
				finders[i] = regexp.QuoteMeta(strings.ReplaceAll(name, " ", "_"))
			}
			cases := "^(a_try|" + strings.Join(finders, "|") + ")$" // a try opens clients, at least
			cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestConformance$/^(plain|nothing.*)$/"+cases)
			cmd.Env = append(os.Environ(), flawVariable+"="+flaw)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatal("the suite has found nothing")
			}
			for _, name := range finders {
				if !regexp.MustCompile("--- FAIL: TestConformance/(plain/)?" + name + " ").Match(out) {
					t.Errorf("not found by %q:\n%s", name, out)
				}
			}
		})
	}
}

// flawed is a process with a flaw, for the suite to find.
type flawed struct {
	*process
	flaw string

	mu      sync.Mutex
	waiting []chan<- result
}

type result struct {
	hold suite.Hold
	err  error
}

func newFlawed(p *process, flaw string) *flawed {
	if flaw == "a goroutine is left" {
		go func() { select {} }()
	}
	return &flawed{process: p, flaw: flaw}
}

func (f *flawed) Acquire(ctx context.Context, lock string, r suite.Request) (suite.Hold, error) {
	name, granting := lock, ctx
	switch f.flaw {
	case "no exclusion":
		name = fmt.Sprintf("%s of %p", lock, f)
	case "a lease without an end":
		r.Lease = 0
	case "who has left still waits":
		var cancel context.CancelFunc
		granting = context.WithoutCancel(ctx)
		if r.Wait != 0 {
			ctx, cancel = context.WithTimeoutCause(ctx, r.Wait, suite.ErrTimeout)
			defer cancel()
			r.Wait = 0
		}
	}
	mine := make(chan result, 1)
	f.mu.Lock()
	f.waiting = append(f.waiting, mine)
	f.mu.Unlock()
	go func() {
		hold, err := f.process.Acquire(granting, name, r)
		if err == nil {
			hold = &flawedHold{hold, f, lock}
		}
		if f.flaw != "last come, first served" {
			mine <- result{hold, err}
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		last := len(f.waiting) - 1
		f.waiting[last] <- result{hold, err}
		f.waiting = f.waiting[:last]
	}()
	select {
	case r := <-mine:
		return r.hold, r.err
	case <-ctx.Done():
		if granting == ctx {
			r := <-mine
			return r.hold, r.err
		}
		return nil, context.Cause(ctx)
	}
}

func (f *flawed) Close(ctx context.Context) error {
	if f.flaw == "a close without a release" {
		return nil
	}
	return f.process.Close(ctx)
}

type flawedHold struct {
	suite.Hold
	by   *flawed
	lock string
}

func (h *flawedHold) Lost() <-chan struct{} {
	if h.by.flaw == "loss is silent" {
		return nil
	}
	return h.Hold.Lost()
}

func (h *flawedHold) Release(ctx context.Context) error {
	if h.by.flaw == "a late release frees" {
		if _, err := h.by.ForceRelease(ctx, h.lock); err != nil {
			return err
		}
	}
	return h.Hold.Release(ctx)
}
