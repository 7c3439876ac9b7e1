package protocol

import (
	"strconv"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// readWrite is Redisson's RReadWriteLock: a hash with a mode and a field for each
// holder, and beside it a key for the lease of each read hold.
type readWrite struct{}

func (readWrite) call(l *Lock, c lock.Command) (call redisclient.Call, how replyFormat) {
	call.Keys = l.hash()
	switch {
	case c.Kind == lock.Acquire, c.Kind == lock.Release && c.Count+c.Shared > 0:
		call.Script = scripts.ReadWriteSet
		call.Args = []string{
			l.Owner(c.Term), strconv.Itoa(c.Count), strconv.Itoa(c.Shared), ms(c.Lease), l.holds, digit(c.Kind == lock.Release), l.Channel,
			l.waitQueue, l.waitQueueSettings(), entry(&c), digit(c.Notified),
		}
		return call, set
	case c.Kind == lock.Release:
		call.Script, how = scripts.ReadWriteRelease, released
		call.Args = []string{l.Owner(c.Term), l.holds, l.Channel, l.waitQueue, l.waitQueueSettings()}
	case c.Kind == lock.Yield:
		call.Script, how = scripts.ReadWriteYield, yielded
		call.Args = []string{
			l.Owner(c.Term), ms(c.Lease), digit(c.Forced), l.holds, l.Channel,
			l.waitQueue, l.waitQueueSettings(), entry(&c),
		}
	case c.Kind == lock.CountWaiters:
		call.Script, how = scripts.CountWaiters, waitersCounted
		call.Args = []string{l.options.Client, l.waitQueue, l.waitQueueSettings(), l.holds}
	case c.Kind == lock.ForceRelease:
		mode := "write"
		if c.Mode == machine.Shared {
			mode = "read"
		}
		call.Script, how = scripts.ReadWriteForceRelease, forced
		call.Args = append([]string{l.holds, mode, l.Channel}, c.Owners...)
	}
	return call, how
}

func (readWrite) inspect(l *Lock) (redisclient.Call, replyFormat) {
	return redisclient.Call{Script: scripts.ReadWriteInspect, Keys: l.hash(), Args: []string{l.Channel}}, inspectedHolders
}

func (readWrite) renewal() *scripts.Script { return scripts.ReadWriteRenew }
