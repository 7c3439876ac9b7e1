package kinds

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
)

// signals records the messages on the channels of a lock of several parts.
type signals struct {
	// busy are the channels of the parts because of which the last try was refused.
	busy []backend.Channel
	// stale are other channels on which a message came since the last try was sent, so a refusal because of their parts
	// may be out of date.
	stale []backend.Channel
}

// noteMessage reports whether a message or a new subscription on a channel may mean that the lock is free. If not, it
// records the channel, since a try under way may be refused because of that part.
func (s *signals) noteMessage(channel backend.Channel) (relevant bool) {
	if s == nil || slices.Contains(s.busy, channel) {
		return true
	}
	if !slices.Contains(s.stale, channel) {
		s.stale = append(s.stale, channel)
	}
	return false
}

// noteTry records that a try is sent.
func (s *signals) noteTry() {
	if s != nil {
		s.stale = nil
	}
}

// noteReply records the channels of the parts that a reply says are busy, and reports whether that may be stale.
func (s *signals) noteReply(busy []backend.Channel) (stale bool) {
	if s == nil || busy == nil {
		return false
	}
	s.busy = busy
	return slices.ContainsFunc(busy, func(channel backend.Channel) bool { return slices.Contains(s.stale, channel) })
}
