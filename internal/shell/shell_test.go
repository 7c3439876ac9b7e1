package shell

import (
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/mailbox"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
)

// tenant records what it handles. It leaves its shell over the letter "leave", and crashes over "answer", once it has
// handed the letter back to its sender.
type tenant struct {
	shell    *Shell
	got      []string
	begun    int
	answered bool
}

// letter is a message to one tenant.
type letter struct {
	to   *tenant
	text string
}

func (t *tenant) IsFor(m any) bool {
	l, ok := m.(letter)
	_, stopping := m.(*actor.Stopping)
	return stopping || ok && l.to == t && !t.answered
}

func (t *tenant) Receive(ctx actor.Context) {
	l, ok := ctx.Message().(letter)
	if !ok {
		return
	}
	t.got = append(t.got, l.text)
	switch l.text {
	case "leave":
		t.shell.Leave()
	case "answer":
		t.answered = true
		panic("after the answer")
	}
}

func (t *tenant) Begins() { t.begun++ }

func (t *tenant) Crashed(m any, _ *actor.PID, _ any) { t.got = append(t.got, "crash") }

// street is a pool, and what has become of its shells and of letters for no tenant.
type street struct {
	*Pool
	root   *actor.RootContext
	post   delivery.Post
	strays []string
	ended  int
	// crashes says before which message the next shell crashes.
	crashes func(m any) bool
}

func newStreet(t *testing.T) *street {
	system := quiet.ActorSystem()
	s := &street{root: system.Root, post: delivery.Post{System: system, Host: host.New(system, system.Logger())}}
	t.Cleanup(system.Shutdown)
	t.Cleanup(func() { s.post.Host.Flush() })
	s.Pool = NewPool(func(ctx actor.Context) {
		if l, ok := ctx.Message().(letter); ok {
			s.strays = append(s.strays, l.text)
		}
	}, func(*Shell) { s.ended++ })
	return s
}

// spawn returns a shell whose mailbox runs it on the goroutine of the test.
func (s *street) spawn() *Shell {
	shell := s.New()
	shell.PID = s.root.Spawn(actor.PropsFromProducer(func() actor.Actor { return shell }, s.post.WithMailbox(mailbox.New, shell),
		actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				if s.crashes != nil && s.crashes(e.Message) {
					s.crashes = nil
					panic("before the message")
				}
				next(c, e)
			}
		})))
	shell.Process, _ = s.post.System.ProcessRegistry.GetLocal(shell.PID.Id)
	return shell
}

func (s *Shell) send(to *tenant, text string) { s.Process.SendUserMessage(s.PID, letter{to, text}) }

// A message to a tenant that has left reaches no other tenant, before and after the next tenant has entered.
func TestShell_HasOneTenantAfterAnother(t *testing.T) {
	s := newStreet(t)
	shell := s.spawn()
	first, second := &tenant{shell: shell}, &tenant{shell: shell}
	shell.send(first, "early")
	shell.Enter(first)
	shell.send(first, "one")
	shell.send(first, "leave")
	if shell.Tenant() != nil {
		t.Error("the first has not left")
	}
	shell.send(first, "late")
	if free := s.Take(); free != shell || s.Take() != nil {
		t.Fatal("the shell is not in the pool, once")
	}
	shell.Enter(second)
	shell.send(first, "later")
	shell.send(second, "two")
	if first.begun != len(first.got) || second.begun != 2 { // also with that for the first
		t.Errorf("%d and %d messages have begun", first.begun, second.begun)
	}
	for _, c := range []struct{ got, want []string }{
		{first.got, []string{"one", "leave"}}, {second.got, []string{"two"}}, {s.strays, []string{"early", "late", "later"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("handled %q, expected %q", c.got, c.want)
		}
	}
}

// A tenant enters although the shell crashes over that message. It settles its own crashes, and no other's.
func TestShell_CrashesWithItsTenant(t *testing.T) {
	s := newStreet(t)
	shell := s.spawn()
	first, second := &tenant{shell: shell}, &tenant{shell: shell}
	s.crashes = func(m any) bool { _, enters := m.(*Entering); return enters }
	shell.Enter(first)
	if shell.Tenant() != first {
		t.Fatal("the tenant was lost in a crash")
	}
	shell.send(first, "zero")
	s.crashes = func(m any) bool { return m == letter{first, "one"} }
	shell.send(first, "one")
	s.crashes = func(m any) bool { return m == letter{second, "two"} }
	shell.send(second, "two")
	if want := []string{"zero", "crash"}; !slices.Equal(first.got, want) || len(second.got) > 0 {
		t.Errorf("handled %q and %q", first.got, second.got)
	}
}

// A tenant settles a crash over a message that it has answered, and which others may have changed since.
func TestShell_CrashesOverWhatWasAnswered(t *testing.T) {
	s := newStreet(t)
	shell := s.spawn()
	one := &tenant{shell: shell}
	shell.Enter(one)
	shell.send(one, "answer")
	if want := []string{"answer", "crash"}; !slices.Equal(one.got, want) {
		t.Errorf("handled %q, expected %q", one.got, want)
	}
}

// A tenant that need not have entered gets nothing more, and the shell goes to another.
func TestPool_TakesAShellBack(t *testing.T) {
	s := newStreet(t)
	shell := s.spawn()
	one := &tenant{shell: shell}
	if !shell.Enter(one) {
		t.Error("the pool counts as closed")
	}
	shell.PutBack()
	shell.send(one, "late")
	if shell.Tenant() != nil || len(one.got) > 0 || s.Take() != shell {
		t.Errorf("%v is still there, with %q", shell.Tenant(), one.got)
	}
	s.Close()
	if shell.Enter(one) {
		t.Error("the pool counts as open")
	}
}

// A shell that was stopped with a tenant, before it was put back, gets no other.
func TestPool_TakesNoStoppedShellBack(t *testing.T) {
	s := newStreet(t)
	shell := s.spawn()
	shell.Enter(&tenant{shell: shell})
	_ = s.root.StopFuture(shell.PID).Wait()
	shell.PutBack()
	if s.Take() != nil {
		t.Error("a shell that was stopped is taken")
	}
}

// A shell that was stopped in the pool gets no tenant.
func TestPool_KeepsNoStoppedShell(t *testing.T) {
	s := newStreet(t)
	shell := s.spawn()
	s.Put(shell)
	_ = s.root.StopFuture(shell.PID).Wait()
	if s.Take() != nil {
		t.Error("a shell that was stopped is taken")
	}
}

// More shells than the pool keeps end, and so do all of a pool that is closed.
func TestPool_EndsShells(t *testing.T) {
	s := newStreet(t)
	for range maxFree + 2 {
		s.Put(s.New())
	}
	if s.ended != 2 {
		t.Errorf("%d have ended, expected 2", s.ended)
	}
	s.Close()
	s.Put(s.New())
	if s.ended != maxFree+3 || s.Take() != nil {
		t.Errorf("%d have ended, expected %d", s.ended, maxFree+3)
	}
}

// A full ring removes the oldest.
func TestRing_IsLeftInOrder(t *testing.T) {
	var ring Ring[int]
	pushed := make([]int, 2*RingSize)
	for i := range pushed {
		oldest := ring.Push(&pushed[i])
		if i < RingSize && oldest != nil || i >= RingSize && oldest != &pushed[i-RingSize] {
			t.Fatalf("the wrong one was removed by number %d", i)
		}
	}
	var removed []*int
	ring.Empty(func(a *int) { removed = append(removed, a) })
	if len(removed) != RingSize || removed[0] != &pushed[RingSize] || ring.Push(&pushed[0]) != nil {
		t.Errorf("%d were removed", len(removed))
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
