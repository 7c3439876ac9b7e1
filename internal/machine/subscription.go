package machine

import "time"

// Subscription is the state of the subscription to a channel.
type Subscription uint8

const (
	Unsubscribed Subscription = iota
	// Requested: it is not confirmed yet.
	Requested
	// Listening: no message is missed.
	Listening
)

// UnsubscribeDelay is the time that a process listens after its last waiter. A request that waits by then has missed no
// message, and needs no try when the subscription is confirmed.
const UnsubscribeDelay = 100 * time.Millisecond

// Confirm notes that it is confirmed, and reports whether it is still wanted.
func (s *Subscription) Confirm() bool {
	if *s == Unsubscribed {
		return false
	}
	*s = Listening
	return true
}

// Follow subscribes if a request waits that was refused, and unsubscribes when none waits.
func (s *Subscription) Follow(waits, refused bool, effects *Effects) {
	switch {
	case waits && refused && *s == Unsubscribed:
		*s = Requested
		effects.Add(Effect{Kind: Subscribe})
	case !waits && *s != Unsubscribed:
		*s = Unsubscribed
		effects.Add(Effect{Kind: Unsubscribe})
	}
}
