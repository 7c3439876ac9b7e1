package wire

import (
	"strconv"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// reentrant is Redisson's RLock: a hash with one field, owner -> hold count. An acquire
// that draws tokens makes it Redisson's RFencedLock, which has a counter beside the hash.
type reentrant struct{}

func (reentrant) call(l *Lock, c core.Command) (call redisio.Call, how reading) {
	call.Keys = l.keys[:2]
	switch {
	case c.Kind == core.Acquire && c.Tokens > 0 && l.Tokens != "":
		call.Script, call.Keys, how = scripts.FencedAcquire, []string{l.Key, l.Tokens}, tookToken
		call.Args = []string{l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease), strconv.FormatInt(c.Tokens, 10)}
	case c.Kind == core.Acquire:
		call.Script, call.Keys, how = scripts.Acquire, l.keys[:1], acquired
		call.Args = []string{l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease)}
	case c.Kind == core.Release:
		call.Script, how = scripts.Release, released
		call.Args = []string{l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease)}
	case c.Kind == core.Yield:
		call.Script, how = scripts.Yield, yielded
		call.Args = []string{l.Owner(c.Term), digit(c.Subscribed), ms(c.Lease), digit(c.Open)}
	case c.Kind == core.ForceRelease:
		call.Script, how = scripts.ForceRelease, forced
	}
	return call, how
}

func (reentrant) inspect(l *Lock) (redisio.Call, reading) {
	return redisio.Call{Script: scripts.Inspect, Keys: l.keys[:2]}, inspected
}

func (reentrant) renewal() *scripts.Script { return scripts.Renew }
