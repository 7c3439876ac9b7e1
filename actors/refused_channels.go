package actors

import (
	"sync"
	"sync/atomic"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// channelRefusals is what is known of channels to which Redis does not let the System subscribe. It decides what is logged:
// each waiter tries again, so that a line for each refusal would fill the log. The zero value is none.
type channelRefusals struct {
	// told is when it was logged last, and times how many refusals there have been since the first; 0 if there is none.
	told  lock.Instant
	times int
	first lock.Instant
	// channels are some of those that are refused.
	channels map[string]struct{}
}

// mostRefused bounds the channels that are kept in mind.
const mostRefused = 1000

// refused takes note of a refusal, and reports whether it is to be logged: the first, and then one in a while.
func (r *channelRefusals) refused(now lock.Instant, channels []string) (first, again bool) {
	if r.times++; r.times == 1 {
		r.first, r.channels = now, map[string]struct{}{}
	}
	for _, channel := range channels {
		if len(r.channels) < mostRefused {
			r.channels[channel] = struct{}{}
		}
	}
	first, again = r.times == 1, r.times > 1 && now >= r.told+outageLogInterval
	if first || again {
		r.told = now
	}
	return first, again
}

// subscribed takes note that a channel is subscribed to, and reports whether the refusals are over: it was one of those
// that were refused.
func (r *channelRefusals) subscribed(channel string) (over bool) {
	if _, was := r.channels[channel]; !was {
		return false
	}
	*r = channelRefusals{}
	return true
}

// refusedChannels are the refusals of a System: of the turn channel, and of others.
type refusedChannels struct {
	// on is set while there are any, so that nothing else is asked outside.
	on     atomic.Bool
	mu     sync.Mutex // guards what follows
	turns  channelRefusals
	others channelRefusals
}

func (c *refusedChannels) of(turn bool) *channelRefusals {
	if turn {
		return &c.turns
	}
	return &c.others
}
