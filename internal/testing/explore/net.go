package explore

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Fault is a fault that a budget limits.
type Fault uint8

// The faults.
const (
	None Fault = iota
	// Network: a message is lost, arrives late or twice, is refused transiently, or its connection breaks.
	Network
	// Reject: Redis rejects a command for a reason that does not pass.
	Reject
	// Slow: time passes although a message is in transit, or a Tick is due.
	Slow
	// Kill is the end of a process.
	Kill
	// Leave: a waiting client withdraws, or dies.
	Leave
	// Meddle: a foreign client changes the state of others.
	Meddle
	// Sleep: more than an hour passes at once, as when the machine sleeps.
	Sleep
	// Times is not a fault: it limits how often time passes; 0 is no limit.
	Times
	faults
)

// Budget is the number of times that each fault may happen.
type Budget [faults]int8

// May returns a budget: for the number of times that time passes, for the number of network faults, and for one of
// each fault in more.
func May(times, network int8, more ...Fault) Budget {
	b := Budget{Times: times, Network: network}
	for _, f := range more {
		b[f] = 1
	}
	return b
}

// Net has the messages in transit, and the clock.
type Net struct {
	Now   machine.Instant
	Spent Budget
	// Calm: no further faults happen.
	Calm bool

	may     Budget
	live    []member
	sent    []message
	digest  *digest
	counter *int
}

// member is a process in the net.
type member struct{ dead, listens bool }

type message struct {
	kind kind
	p    int
	// copied: it is the second of two copies.
	late, copied    bool
	command, result any
}

type kind int8

const (
	command kind = iota
	reply
	subscription
	signal
	kinds
)

func (m message) String() string {
	text := fmt.Sprintf("p%d's %s", m.p, [...]string{"command", "reply", "subscription", "message"}[m.kind])
	if m.late {
		text = "late: " + text
	}
	if m.kind <= reply {
		text += fmt.Sprintf(" %+v", m.command)
	}
	if m.kind == reply {
		text += fmt.Sprintf(": %+v", m.result)
	}
	return text
}

// Dead reports whether a process has ended.
func (n *Net) Dead(i int) bool { return n.live[i].dead }

// Listens reports whether any process but i listens.
func (n *Net) Listens(but int) bool {
	for i, m := range n.live {
		if m.listens && i != but {
			return true
		}
	}
	return false
}

// Listeners returns the number of processes that listen.
func (n *Net) Listeners() (all int) {
	for _, m := range n.live {
		if m.listens {
			all++
		}
	}
	return all
}

// Send sends a command of process i to Redis.
func (n *Net) Send(i int, c any) { n.sent = append(n.sent, message{kind: command, p: i, command: c}) }

// Subscribe begins the messages to process i.
func (n *Net) Subscribe(i int) { n.sent = append(n.sent, message{kind: subscription, p: i}) }

// Unsubscribe ends the messages to process i.
func (n *Net) Unsubscribe(i int) {
	n.live[i].listens = false
	n.sent = slices.DeleteFunc(n.sent, func(m message) bool { return m.p == i && m.kind >= subscription })
}

// Publish sends a message to all processes that listen. A second one in transit to a process would have no effect.
func (n *Net) Publish() {
	for i, m := range n.live {
		if m.listens {
			n.Wake(i)
		}
	}
}

// Wake sends a message to a process. A second one in transit would have no effect.
func (n *Net) Wake(i int) {
	if !slices.ContainsFunc(n.sent, func(m message) bool { return m.p == i && m.kind == signal }) {
		n.sent = append(n.sent, message{kind: signal, p: i})
	}
}

// Faultless reports whether no fault has happened yet.
func (n *Net) Faultless() bool {
	return n.Spent[Network]+n.Spent[Reject]+n.Spent[Slow]+n.Spent[Kill]+n.Spent[Sleep] == 0
}

// Quiet reports whether no fault has happened and no message is in transit.
func (n *Net) Quiet() bool { return n.Faultless() && len(n.sent) == 0 }

func (n *Net) can(f Fault) bool {
	return f == None || f == Times && n.may[f] == 0 || !n.Calm && n.Spent[f] < n.may[f]
}

// violation is what Violated panics with.
type violation struct{ error }

// Violated reports a violation of a rule. It does not return.
func (n *Net) Violated(format string, args ...any) { panic(violation{fmt.Errorf(format, args...)}) }

func caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case violation:
		*err = p.error
	default:
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}
