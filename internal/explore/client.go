package explore

import "github.com/lockkeeper-go/lockkeeper/internal/lock"

// Client is somebody who asks for something, may get it, and gives it back then.
type Client struct {
	State State
	// ID is that of its request, and grows within a process. By is when it must have its answer, 0 for
	// never.
	ID uint64
	By lock.Instant
}

// State is how far a client is.
type State int8

// The states.
const (
	Fresh State = iota
	Asking
	Holding
	Releasing
	Done
	// Dead is who has died while it asked or had something. It may be told what happened before.
	Dead
)

// What a client may do.
const (
	Asks      = "asks"
	Withdraws = "withdraws"
	Dies      = "dies"
	GivesBack = "gives back"
)

// Wishes appends what client k may do. waits says that it may have to wait for what it asks for, and
// again that it asks more than once.
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

// Answered takes an answer; has says that the client has something now.
func (c *Client) Answered(n *Net, has bool) {
	switch {
	case c.State == Dead && !has:
	case c.State != Asking && c.State != Releasing:
		n.Violated("%+v is answered, and does not ask", *c)
	case has:
		c.State = Holding
	default:
		c.State = Done
	}
}

// Check checks that the client has its answer in time, unless its process is still to be told that it
// is over.
func (c *Client) Check(n *Net, process Core) {
	waits := c.By != 0 && (c.State == Asking || c.State == Releasing)
	if at, ok := process.NextWake(); waits && n.Now >= c.By && (!ok || at > n.Now) {
		n.Violated("%+v is not answered in time", *c)
	}
}
