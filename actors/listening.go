package actors

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
)

// listen subscribes to the channels where the release of the lock is told to a waiter of
// that term.
func (s *lockState) listen(term uint64) {
	s.subscribed = s.variant.Channels(term)
	for _, e := range s.subscribed {
		on := systemOf(e)
		on.Deliver(on.subscriber, &subscribe{state: s, channel: e, term: term})
	}
}

func (s *lockState) stopListening() {
	for _, e := range s.subscribed {
		on := systemOf(e)
		on.Deliver(on.subscriber, &unsubscribe{state: s, channel: e})
	}
	s.subscribed = nil
}

// hearsTransfers reports whether the process hears of transfers of the lock to that term.
func (s *lockState) hearsTransfers(term uint64) bool {
	if !s.rt.channels.sharded {
		return s.rt.channels.hearsTransfers()
	}
	return !slices.ContainsFunc(s.variant.Channels(term), func(e backend.Channel) bool {
		on := systemOf(e).channels
		return !on.subscriptions.Confirmed(on.of(e)[0])
	})
}

// systemOf is the system whose subscriber listens on a channel.
func systemOf(e backend.Channel) *Runtime { return e.Server.System.(*Runtime) }

// signals are what was heard of a lock of several parts.
type signals struct {
	// busy are the channels of the parts because of which the last try was refused.
	busy []backend.Channel
	// stale are other channels of which something was heard since the last try was sent: a
	// refusal because of them may be stale.
	stale []backend.Channel
}

// relevant reports whether what happens on a channel may mean that the lock is free. If not,
// it takes note: a try may be under way that is refused because of that very part.
func (s *signals) relevant(e backend.Channel) bool {
	if s == nil || slices.Contains(s.busy, e) {
		return true
	}
	if !slices.Contains(s.stale, e) {
		s.stale = append(s.stale, e)
	}
	return false
}

// tried takes note that a try is sent.
func (s *signals) tried() {
	if s != nil {
		s.stale = nil
	}
}

// replied takes note of the channels of the parts that a reply says are busy, and reports whether
// that may be stale.
func (s *signals) replied(busy []backend.Channel) (stale bool) {
	if s == nil || busy == nil {
		return false
	}
	s.busy = busy
	return slices.ContainsFunc(busy, func(e backend.Channel) bool { return slices.Contains(s.stale, e) })
}
