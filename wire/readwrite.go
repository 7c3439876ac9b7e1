package wire

import (
	"strconv"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// readWrite is Redisson's RReadWriteLock: a hash with a mode and a field for each
// holder, and beside it a key for the lease of each read hold.
type readWrite struct{}

func (readWrite) call(l *Lock, c core.Command) (call redisio.Call, how reading) {
	call.Keys = l.hash()
	switch {
	case c.Kind == core.Acquire, c.Kind == core.Release && c.Count+c.Shared > 0:
		announce := "0"
		if c.Announce {
			announce = ms(l.options.Announcement)
		}
		call.Script = scripts.ReadWriteSet
		call.Args = []string{l.Owner(c.Term), strconv.Itoa(c.Count), strconv.Itoa(c.Shared), ms(c.Lease), announce, l.holds, digit(c.Kind == core.Release), l.Channel, l.writer}
		return call, set
	case c.Kind == core.Release:
		call.Script, how = scripts.ReadWriteRelease, released
		call.Args = []string{l.Owner(c.Term), l.holds, l.Channel, l.writer}
	case c.Kind == core.Yield:
		call.Script, how = scripts.ReadWriteYield, yielded
		call.Args = []string{l.Owner(c.Term), digit(c.Subscribed), ms(c.Lease), digit(c.Open), l.holds, l.Channel, l.writer}
	case c.Kind == core.Look:
		call.Script, how = scripts.Look, looked
		call.Args = []string{l.options.Client, digit(c.Subscribed), l.Channel, l.writer}
	case c.Kind == core.ForceRelease:
		mode := "write"
		if c.Mode == core.Shared {
			mode = "read"
		}
		call.Script, how = scripts.ReadWriteForceRelease, forced
		call.Args = []string{l.holds, mode, l.Channel}
	}
	return call, how
}

func (readWrite) inspect(l *Lock) (redisio.Call, reading) {
	return redisio.Call{Script: scripts.ReadWriteInspect, Keys: l.hash(), Args: []string{l.Channel}}, inspectedHolders
}

func (readWrite) renewal() *scripts.Script { return scripts.ReadWriteRenew }
