package machine

// Subscription is the state of the subscription to a channel.
type Subscription uint8

const (
	Unsubscribed Subscription = iota
	// Requested: it is not confirmed yet.
	Requested
	// Listening: no message is missed.
	Listening
)

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
