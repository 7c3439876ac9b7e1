package machine

import "time"

// Subscription is the state of the subscription to a channel.
type Subscription struct {
	State SubscriptionState
	// Term is the term of its effect Subscribe. With a queue in Redis, every waiter has its own channel.
	Term uint64
	// Until is the end of the subscription after the last waiter; 0 while there are waiters.
	Until Instant
}

// SubscriptionState is what is known of a subscription.
type SubscriptionState uint8

const (
	Unsubscribed SubscriptionState = iota
	// Requested: it is not confirmed yet.
	Requested
	// Listening: no message is missed.
	Listening
)

// UnsubscribeDelay is the time that a process listens after its last waiter. A request that waits by then has missed no
// message, and needs no try when the subscription is confirmed.
const UnsubscribeDelay = 100 * time.Millisecond

// Confirm notes that the subscription with that term is confirmed, and reports whether it is still wanted.
func (s *Subscription) Confirm(term uint64) bool {
	if s.State == Unsubscribed || s.Term != term {
		return false
	}
	s.State = Listening
	return true
}

// Follow subscribes to the channel of a term if a request waits that was refused. When none waits, it unsubscribes, at
// once or, if later waiters may use it, after UnsubscribeDelay.
func (s *Subscription) Follow(now Instant, waits, refused, reusable bool, term uint64, effects *Effects) {
	wanted := waits && (refused || s.State != Unsubscribed)
	switch {
	case wanted:
		s.Until = 0
	case reusable && s.State == Listening:
		if s.Until == 0 {
			s.Until = now + UnsubscribeDelay
		}
		if now < s.Until {
			return
		}
	}
	if s.State != Unsubscribed && (!wanted || term != s.Term) {
		effects.Add(Effect{Kind: Unsubscribe, Term: s.Term})
		*s = Subscription{}
	}
	if wanted && s.State == Unsubscribed {
		*s = Subscription{State: Requested, Term: term}
		effects.Add(Effect{Kind: Subscribe, Term: term})
	}
}
