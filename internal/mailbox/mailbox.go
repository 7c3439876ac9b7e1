// Package mailbox provides the mailboxes of Lockkeeper's actors, and the goroutines that run them.
package mailbox

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// senderBudget is the number of messages that a mailbox handles on the goroutine of a sender, before it continues on a
// goroutine of the dispatcher.
const senderBudget = 16

// mailbox runs its actor on the goroutine that posts a message, if the actor is not running already. Handling a message
// takes a microsecond or two. Waking up a goroutine costs more, and a fresh goroutine costs as much again for growing
// its stack. The budget keeps a sender from handling the messages of all other senders.
//
// To actors a mailbox behaves like proto.actor's own mailboxes: system messages come first, also while the mailbox is
// suspended, and a panic goes to the supervisor.
type mailbox struct {
	// The fields that every message changes are in one cache line.
	mu        sync.Mutex // guards the fields from here to system
	running   bool
	suspended bool
	urgent    bool // system is not empty
	user      fifo
	system    fifo

	// separate: the actor runs on goroutines of the dispatcher only.
	separate   bool
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	own        func() // run, on a goroutine of the dispatcher
}

var _ actor.Mailbox = (*mailbox)(nil)

// New returns a mailbox that may run its actor on the goroutine of a sender.
func New() actor.Mailbox { return &mailbox{} }

// NewSeparate returns a mailbox for an actor that must not run on the goroutine of a sender.
func NewSeparate() actor.Mailbox { return &mailbox{separate: true} }

func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
	m.own = func() { m.run(0) }
}

func (m *mailbox) Start() {}

func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.user.len()
}

func (m *mailbox) PostUserMessage(message any) {
	if message == nil {
		return // nil would look like the end of the queue
	}
	m.mu.Lock()
	inline := !m.running && !m.suspended && !m.separate
	if !inline {
		m.user.push(message)
	}
	if m.running || m.suspended {
		m.mu.Unlock()
		return
	}
	m.running = true
	m.mu.Unlock()
	if inline {
		m.handle(message, false) // this is the only message, so it need not be queued
		m.run(senderBudget - 1)
	} else {
		m.dispatcher.Schedule(m.own)
	}
}

func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.system.push(message)
	m.urgent = true
	if m.running {
		m.mu.Unlock()
		return
	}
	m.running = true
	m.mu.Unlock()
	m.begin()
}

func (m *mailbox) begin() {
	if m.separate {
		m.dispatcher.Schedule(m.own)
		return
	}
	m.run(senderBudget)
}

// run handles messages until there are none or the budget is used up. A budget of 0 is unlimited, for goroutines of
// the dispatcher.
func (m *mailbox) run(budget int) {
	for handled := 1; m.handleNext(); handled++ {
		if budget > 0 && handled == budget {
			m.dispatcher.Schedule(m.own)
			return
		}
		if handled%1000 == 0 {
			runtime.Gosched()
		}
	}
}

// handleNext handles one message, or ends the run if there is none.
func (m *mailbox) handleNext() (more bool) {
	m.mu.Lock()
	var message any
	isSystem := m.urgent
	if isSystem {
		message = m.system.pop()
		m.urgent = m.system.len() > 0
	} else if !m.suspended {
		message = m.user.pop()
	}
	switch message.(type) {
	case nil:
		m.running = false
		m.mu.Unlock()
		return false
	case *actor.SuspendMailbox:
		m.suspended = true
		m.mu.Unlock()
		return true
	case *actor.ResumeMailbox:
		m.suspended = false
		m.mu.Unlock()
		return true
	}
	m.mu.Unlock()
	m.handle(message, isSystem)
	return true
}

// handle lets the actor handle a message.
func (m *mailbox) handle(message any, isSystem bool) {
	defer func() {
		if panicked := recover(); panicked != nil {
			m.escalate(panicked, message)
		}
	}()
	if isSystem {
		m.invoker.InvokeSystemMessage(message)
	} else {
		m.invoker.InvokeUserMessage(message)
	}
}

// escalate reports a panic to the supervisor, which calls the host's logger. If the logger panics, the actor continues
// with its next message.
func (m *mailbox) escalate(panicked, message any) {
	defer func() { _ = recover() }()
	m.invoker.EscalateFailure(panicked, message)
}

// fifo is a queue that frees the memory of a burst.
type fifo struct {
	messages []any
	head     int
}

func (f *fifo) len() int { return len(f.messages) - f.head }

func (f *fifo) push(message any) { f.messages = append(f.messages, message) }

// pop returns nil if the queue is empty.
func (f *fifo) pop() any {
	if f.head == len(f.messages) {
		return nil
	}
	message := f.messages[f.head]
	f.messages[f.head] = nil
	f.head++
	switch {
	case f.head == len(f.messages):
		if f.messages, f.head = f.messages[:0], 0; cap(f.messages) > 64 {
			f.messages = nil
		}
	case f.head >= 64 && 2*f.head >= len(f.messages):
		left := copy(f.messages, f.messages[f.head:])
		clear(f.messages[left:])
		f.messages, f.head = f.messages[:left], 0
	}
	return message
}
