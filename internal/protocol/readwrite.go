package protocol

import (
	"strconv"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// readWrite is Redisson's RReadWriteLock: a hash with a mode and a field for each
// holder, and with it a key for the lease of each read hold.
type readWrite struct {
	// holds is the beginning of the keys of those leases.
	holds string
}

func init() {
	formats[forms.ReadWrite] = func(of *forms.Form, name string) format { return &readWrite{holds: of.Leases(name)} }
}

func (r *readWrite) call(l *Lock, c lock.Command) (call redisclient.Call) {
	call.Keys = l.hash()
	switch {
	case c.Kind == lock.Acquire, c.Kind == lock.Release && c.Count+c.Shared > 0:
		call.Script, call.Format = scripts.ReadWriteSet, set
		call.Args = []string{
			l.Owner(c.Term), strconv.Itoa(c.Count), strconv.Itoa(c.Shared), ms(c.Lease), r.holds, digit(c.Kind == lock.Release), l.Channel,
			l.waitQueue, l.waitQueueSettings(), entry(&c), digit(c.Notified),
		}
	case c.Kind == lock.Release:
		call.Script, call.Format = scripts.ReadWriteRelease, released
		call.Args = []string{l.Owner(c.Term), r.holds, l.Channel, l.waitQueue, l.waitQueueSettings()}
	case c.Kind == lock.Yield:
		call.Script, call.Format = scripts.ReadWriteYield, yielded
		call.Args = []string{
			l.Owner(c.Term), ms(c.Lease), digit(c.Forced), r.holds, l.Channel,
			l.waitQueue, l.waitQueueSettings(), entry(&c),
		}
	case c.Kind == lock.CountWaiters:
		call.Script, call.Format = scripts.CountWaiters, waitersCounted
		call.Args = []string{l.options.Client, l.waitQueue, l.waitQueueSettings(), r.holds}
	case c.Kind == lock.ForceRelease:
		mode := "write"
		if c.Mode == machine.Shared {
			mode = "read"
		}
		call.Script, call.Format = scripts.ReadWriteForceRelease, forced
		call.Args = append([]string{r.holds, mode, l.Channel}, c.Owners...)
	}
	return call
}

func (*readWrite) inspect(l *Lock) redisclient.Call {
	return redisclient.Call{Script: scripts.ReadWriteInspect, Format: inspectedHolders, Keys: l.hash(), Args: []string{l.Channel}}
}

func (r *readWrite) renewal() (*scripts.Script, []string) {
	return scripts.ReadWriteRenew, []string{r.holds}
}

func (r *readWrite) member(l *Lock) (string, [2]string) { return r.holds, [2]string{l.Key(), l.Key()} }
