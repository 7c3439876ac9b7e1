package protocol

import (
	"strconv"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// plain is Redisson's RLock: a hash with one field, owner -> hold count. An acquire
// that draws tokens makes it Redisson's RFencedLock, which also has a counter.
type plain struct{}

func init() {
	formats[forms.Plain] = func(*forms.Form, string) format { return plain{} }
}

func (plain) call(l *Lock, c lock.Command) (call redisclient.Call) {
	call.Keys = l.hash()
	switch {
	case c.Kind == lock.Acquire && c.Tokens > 0 && l.Tokens != "":
		wanted := tokens(&c)
		call.Script, call.Second, call.Format = scripts.FencedAcquire, draw(l.Tokens, wanted), fencedAcquired
		call.Args = []string{
			l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease), wanted, l.Tokens,
			l.waitQueue, l.waitQueueSettings(), entry(&c), digit(c.Notified),
		}
	case c.Kind == lock.Acquire:
		call.Script, call.Format = scripts.Acquire, acquired
		call.Args = []string{
			l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease), l.waitQueue, l.waitQueueSettings(), l.Tokens, entry(&c), digit(c.Notified),
		}
	case c.Kind == lock.Release:
		call.Script, call.Format = scripts.Release, released
		call.Args = []string{
			l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease), l.Channel, l.waitQueue, l.waitQueueSettings(), l.Tokens,
		}
	case c.Kind == lock.Keep:
		call.Script, call.Format = scripts.Keep, renewed
		call.Args = []string{l.Owner(c.Term), l.Keeper(c.Term), ms(c.Lease)}
	case c.Kind == lock.Yield:
		call.Script, call.Format = scripts.Yield, yielded
		call.Args = []string{
			l.Owner(c.Term), ms(c.Lease), digit(c.Forced), l.Channel, l.waitQueue, l.waitQueueSettings(), l.Tokens, entry(&c),
		}
	case c.Kind == lock.ForceRelease:
		call.Script, call.Format = scripts.ForceRelease, forced
		call.Args = append([]string{l.Channel}, c.Owners...)
	}
	return call
}

// tokens returns how many tokens to draw from each counter, and the number that they must exceed.
func tokens(c *lock.Command) string {
	text := strconv.AppendInt(nil, c.Tokens, 10)
	for _, had := range c.Above {
		text = strconv.AppendInt(append(text, '+'), had, 10)
	}
	return string(text)
}

// draw returns the second script of an acquire, for a counter that may be on another server. Its tokens are
// higher than the tokens of all earlier owners. If it is so late that the next owner has drawn already, the lease is
// over, and nothing is granted.
func draw(counter, wanted string) redisclient.Second {
	return redisclient.Second{Script: scripts.Draw, Key: counter, Arg: wanted}
}

func (plain) inspect(l *Lock) redisclient.Call {
	return redisclient.Call{Script: scripts.Inspect, Format: inspected, Keys: l.hash(), Args: []string{l.Channel}}
}

func (plain) renewal() (*scripts.Script, []string) { return scripts.Renew, nil }

func (plain) member(l *Lock) (string, [2]string) { return l.Tokens, [2]string{l.Key(), l.Key()} }
