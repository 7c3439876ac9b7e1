package faults

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// forceLate makes the operator inspect a lock and release it by force, with a command that is delayed until others hold
// the lock.
func forceLate(w *World) error {
	c := w.clients[0]
	lock := w.one("plain", "reentrant", "fenced", "fair", "readwrite")
	if err := c.order(traffic.See, lock); err != nil {
		return err
	}
	if err := c.expect(traffic.Seen, limit); err != nil {
		return err
	}
	delay := w.between(300, 1300)
	return w.during(history.Fault{Name: "late forced release", Proc: -1, BreaksLeases: true, Forces: true, Lock: lock}, func() error {
		c.proxy.Set(func(r *rig.Rules) { r.Up.Delay = delay })
		defer c.proxy.Set(func(r *rig.Rules) { *r = rig.Rules{} })
		if err := c.order(traffic.Force, lock); err != nil {
			return err
		}
		err := c.expect(traffic.Forced, limit)
		time.Sleep(delay + 200*time.Millisecond) // the last command has arrived
		return err
	})
}
