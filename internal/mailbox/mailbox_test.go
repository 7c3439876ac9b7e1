package mailbox

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// invoker records the messages that it handles; then runs during each.
type invoker struct {
	handled   []any
	escalated []any
	then      func(message any)
}

func (i *invoker) InvokeUserMessage(m any)   { i.invoke(m) }
func (i *invoker) InvokeSystemMessage(m any) { i.invoke(m) }

func (i *invoker) invoke(m any) {
	i.handled = append(i.handled, m)
	if i.then != nil {
		i.then(m)
	}
}

func (i *invoker) EscalateFailure(_ any, message any) { i.escalated = append(i.escalated, message) }

// later keeps the functions that a mailbox schedules, for the test to run.
type later struct{ scheduled []func() }

func (l *later) Schedule(f func()) { l.scheduled = append(l.scheduled, f) }
func (l *later) Throughput() int   { return 300 }

func newTestMailbox() (*mailbox, *invoker, *later) {
	m, i, l := New().(*mailbox), &invoker{}, &later{}
	m.RegisterHandlers(i, l)
	m.Start()
	return m, i, l
}

func TestMailbox_RunsOnTheSendersGoroutine(t *testing.T) {
	m, i, l := newTestMailbox()
	m.PostUserMessage(1)
	m.PostSystemMessage(2)
	if want := []any{1, 2}; !slices.Equal(i.handled, want) || len(l.scheduled) != 0 {
		t.Errorf("handled %v, scheduled %d; expected %v at once", i.handled, len(l.scheduled), want)
	}
}

func TestMailbox_TakesSystemMessagesFirst(t *testing.T) {
	m, i, _ := newTestMailbox()
	i.then = func(message any) {
		if message == 1 { // the mailbox runs, so these messages have to wait
			m.PostUserMessage(2)
			m.PostUserMessage(3)
			m.PostSystemMessage("system")
			if len(i.handled) != 1 {
				t.Error("a message was handled inside another")
			}
			if n := m.UserMessageCount(); n != 2 {
				t.Errorf("%d messages wait", n)
			}
		}
	}
	m.PostUserMessage(1)
	if want := []any{1, "system", 2, 3}; !slices.Equal(i.handled, want) {
		t.Errorf("handled %v, expected %v", i.handled, want)
	}
}

func TestMailbox_KeepsUserMessagesWhileSuspended(t *testing.T) {
	m, i, _ := newTestMailbox()
	m.PostSystemMessage(&actor.SuspendMailbox{})
	m.PostUserMessage(1)
	m.PostUserMessage(2)
	m.PostSystemMessage("system")
	if want := []any{"system"}; !slices.Equal(i.handled, want) {
		t.Errorf("handled %v while suspended, expected %v", i.handled, want)
	}
	m.PostSystemMessage(&actor.ResumeMailbox{})
	if want := []any{"system", 1, 2}; !slices.Equal(i.handled, want) {
		t.Errorf("handled %v, expected %v", i.handled, want)
	}
}

func TestMailbox_EscalatesAPanicAndContinues(t *testing.T) {
	m, i, _ := newTestMailbox()
	i.then = func(message any) {
		if message == 1 {
			m.PostUserMessage(2)
			panic("1")
		}
	}
	m.PostUserMessage(1)
	m.PostUserMessage(3)
	if want := []any{1, 2, 3}; !slices.Equal(i.handled, want) {
		t.Errorf("handled %v, expected %v", i.handled, want)
	}
	if want := []any{1}; !slices.Equal(i.escalated, want) {
		t.Errorf("escalated %v, expected %v", i.escalated, want)
	}
}

// A nil message is dropped, and the messages after it are handled.
func TestMailbox_DropsNil(t *testing.T) {
	m, i, _ := newTestMailbox()
	i.then = func(message any) {
		if message == 1 { // the mailbox runs, so these messages have to wait
			m.PostUserMessage(nil)
			m.PostUserMessage(2)
		}
	}
	m.PostUserMessage(1)
	if want := []any{1, 2}; !slices.Equal(i.handled, want) {
		t.Errorf("handled %v, expected %v", i.handled, want)
	}
}

func TestMailbox_LimitsWorkOnTheSendersGoroutine(t *testing.T) {
	m, i, l := newTestMailbox()
	i.then = func(message any) {
		if n := message.(int); n < 100 {
			m.PostUserMessage(n + 1)
		}
	}
	m.PostUserMessage(1)
	if len(i.handled) != senderBudget || len(l.scheduled) != 1 {
		t.Fatalf("handled %d messages and scheduled %d times; expected %d and 1", len(i.handled), len(l.scheduled), senderBudget)
	}
	m.PostUserMessage(101) // the mailbox counts as running
	if len(i.handled) != senderBudget {
		t.Fatal("handled a message although a scheduled goroutine was to continue")
	}
	l.scheduled[0]()
	if len(i.handled) != 101 || len(l.scheduled) != 1 {
		t.Errorf("handled %d of 101 messages, scheduled %d times", len(i.handled), len(l.scheduled))
	}
	i.then = nil
	m.PostUserMessage(102)
	if len(i.handled) != 102 {
		t.Error("the mailbox no longer runs")
	}
}

func TestMailbox_KeepsEachSendersOrder(t *testing.T) {
	type numbered struct{ sender, n int }
	const senders, each = 8, 2000
	m, i := New(), &invoker{}
	m.RegisterHandlers(i, actor.NewDefaultDispatcher(300))
	last, all := make([]int, senders), make(chan struct{})
	i.then = func(message any) {
		switch x := message.(type) {
		case numbered:
			if x.n != last[x.sender]+1 {
				t.Errorf("sender %d: %d came after %d", x.sender, x.n, last[x.sender])
			}
			last[x.sender] = x.n
		case string:
			close(all)
		}
	}
	var work sync.WaitGroup
	for s := range senders {
		work.Go(func() {
			for n := range each {
				m.PostUserMessage(numbered{s, n + 1})
			}
		})
	}
	work.Wait()
	m.PostUserMessage("end")
	<-all
	if len(i.handled) != senders*each+1 {
		t.Errorf("handled %d messages of %d", len(i.handled), senders*each+1)
	}
}

func TestFifo_FreesTheMemoryOfABurst(t *testing.T) {
	var f fifo
	for n := range 10_000 {
		f.push(n)
	}
	for n := range 10_000 {
		if got := f.pop(); got != n {
			t.Fatalf("popped %v, expected %d", got, n)
		}
	}
	if f.pop() != nil || f.len() != 0 {
		t.Error("the queue is not empty")
	}
	if cap(f.messages) > 64 {
		t.Errorf("room for %d messages stays allocated", cap(f.messages))
	}
	// A queue that is never empty does not grow forever.
	f.push(0)
	for n := range 100_000 {
		f.push(n)
		f.pop()
	}
	if cap(f.messages) > 1024 {
		t.Errorf("room for %d messages stays allocated for one", cap(f.messages))
	}
}

// Every job runs once, also with more jobs than goroutines that stay, and after Close.
func TestGoroutines_RunEachJobOnce(t *testing.T) {
	var k Goroutines
	var ran atomic.Int32
	var jobs sync.WaitGroup
	const n = 5000
	for i := range n {
		jobs.Add(1)
		k.Schedule(func() {
			defer jobs.Done()
			ran.Add(1)
			runtime.Gosched()
		})
		if i == n/2 {
			k.Close()
		}
	}
	jobs.Wait()
	if ran.Load() != n {
		t.Fatalf("%d of %d jobs ran", ran.Load(), n)
	}
}
