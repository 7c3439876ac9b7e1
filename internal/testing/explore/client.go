package explore

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// Client asks for something, may get it, and then gives it back.
type Client struct {
	State State
	// ID is the ID of the client's request; IDs increase within a process.
	ID uint64
	// By is the latest time of the answer; 0 for none.
	By machine.Instant
}

// State is the state of a client.
type State int8

// The states.
const (
	Fresh State = iota
	Asking
	Holding
	Releasing
	Done
	// Dead: the client died while it asked or held something. It may still get an earlier answer.
	Dead
)

// The actions of a client.
const (
	Asks      = "asks"
	Withdraws = "withdraws"
	Dies      = "dies"
	GivesBack = "gives back"
)

// Wishes appends the actions that are possible for client k. waits: it may have to wait. again: it asks more than
// once.
func (c *Client) Wishes(list []Wish, k int, waits, again bool) []Wish {
	switch {
	case c.State == Fresh, again && c.State >= Done:
		return append(list, Wish{k, Asks, None})
	case c.State == Asking && waits:
		return append(list, Wish{k, Withdraws, Leave}, Wish{k, Dies, Leave})
	case c.State == Holding:
		return append(list, Wish{k, GivesBack, None})
	}
	return list
}

// Answered handles an answer. has: the client has got what it asked for.
func (c *Client) Answered(n *Net, has bool) {
	switch {
	case c.State == Dead && !has:
	case c.State != Asking && c.State != Releasing:
		n.Violated("%+v is answered without a request", *c)
	case has:
		c.State = Holding
	default:
		c.State = Done
	}
}

// Check reports a violation if the client has no answer in time, unless its process has yet to get the Tick for it.
func (c *Client) Check(n *Net, process Core) {
	waits := c.By != 0 && (c.State == Asking || c.State == Releasing)
	if at, ok := process.NextWake(); waits && n.Now >= c.By && (!ok || at > n.Now) {
		n.Violated("%+v is not answered in time", *c)
	}
}
