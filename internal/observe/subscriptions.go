package observe

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// channelRefusals counts the channels to which Redis does not let the System subscribe. It decides which refusals are
// logged: each waiter tries again, so a line for each refusal would fill the log. The zero value means no refusals.
type channelRefusals struct {
	// loggedAt is the time of the last log line.
	loggedAt machine.Instant
	// times is the number of refusals since the first; 0 if there is none.
	times int
	first machine.Instant
	// channels are some of the channels that are refused.
	channels map[string]struct{}
}

// maxRefused bounds the channels that are remembered.
const maxRefused = 1000

// refused records a refusal, and reports whether it is to be logged: the first refusal, and then one once in a while.
func (r *channelRefusals) refused(now machine.Instant, channels []string) (first, again bool) {
	if r.times++; r.times == 1 {
		r.first, r.channels = now, map[string]struct{}{}
	}
	for _, channel := range channels {
		if len(r.channels) < maxRefused {
			r.channels[channel] = struct{}{}
		}
	}
	first, again = r.times == 1, r.times > 1 && now >= r.loggedAt+outageLogInterval
	if first || again {
		r.loggedAt = now
	}
	return first, again
}

// subscribed records a subscription to a channel, and reports whether it ends the refusals, as it does if the channel
// was refused before.
func (r *channelRefusals) subscribed(channel string) (over bool) {
	if _, was := r.channels[channel]; !was {
		return false
	}
	*r = channelRefusals{}
	return true
}

// refusedChannels are the refusals of a System: of the turn channel, and of other channels.
type refusedChannels struct {
	// on is set while there are refusals. While it is not, Subscribed takes no mutex.
	on     atomic.Bool
	mu     sync.Mutex // guards the fields below
	turns  channelRefusals
	others channelRefusals
}

// of returns the refusals of the turn channel, or of the other channels.
func (c *refusedChannels) of(turn bool) *channelRefusals {
	if turn {
		return &c.turns
	}
	return &c.others
}

// SubscriptionRefused logs that Redis refuses to let the System subscribe to channels; turn says that one of them
// is the turn channel. Each waiter tries again, so the log has the first refusal, and a summary once in a while.
func (o *Observer) SubscriptionRefused(turn bool, channels []string, err error) {
	c := &o.refusals
	c.mu.Lock()
	of := c.of(turn)
	first, again := of.refused(o.cfg.Now(), channels)
	lasts, times := rounded(of.loggedAt-of.first), of.times
	c.on.Store(true)
	c.mu.Unlock()
	switch {
	case first:
		o.host.Warn("Redis refuses a subscription: "+consequence(turn), "channels", channels, "error", err)
	case again:
		o.host.Warn("Redis still refuses subscriptions: "+consequence(turn), "for", lasts, "refused", times, "channels", channels, "error", err)
	}
}

// Subscribed records that Redis has confirmed a subscription; turn says that it is to the turn channel.
func (o *Observer) Subscribed(turn bool, channel string) {
	c := &o.refusals
	if !c.on.Load() {
		return
	}
	c.mu.Lock()
	times := c.of(turn).times
	over := c.of(turn).subscribed(channel)
	c.on.Store(c.turns.times+c.others.times > 0)
	c.mu.Unlock()
	if over {
		o.host.Log(slog.LevelInfo, "Redis allows a subscription again that it refused", "refused", times, "channel", channel)
	}
}

func consequence(turn bool) string {
	if turn {
		return "no lock is transferred to this process"
	}
	return "waiters have to poll"
}

// SubscribingFails logs that the command to subscribe keeps failing. server is "" if there is only one.
func (o *Observer) SubscribingFails(command, server string, poll time.Duration, err error) {
	o.host.Warn(command+" keeps failing: waits depend on polling, and no lock is transferred to this process",
		append(atServer(server), "poll", poll, "error", err)...)
}

// SubscribingWorks logs that the command to subscribe works again.
func (o *Observer) SubscribingWorks(command, server string) {
	o.host.Log(slog.LevelInfo, command+" works again", atServer(server)...)
}

// atServer names a server in a log line, if there are several.
func atServer(address string) []any {
	if address == "" {
		return nil
	}
	return []any{"server", address}
}
