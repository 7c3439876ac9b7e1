package faults

import (
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// suspendClients has the machine of all clients sleep, while Redis goes on elsewhere: more
// time passes than their timers, and the clock of the histories, know of. Redis stands
// still until all clocks have moved, so that no command is sent by the one and carried
// out by the other time.
func suspendClients(w *World) error {
	return w.during(history.Fault{Name: "suspend the clients", Proc: -1, Hinders: true, Jumps: true}, func() error {
		if err := w.server.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		nap := w.ofLease(20, 180)
		for _, c := range w.clients {
			if err := c.order(traffic.Suspend, nap.Milliseconds()); err != nil {
				return err
			}
		}
		for _, c := range w.clients {
			if err := c.expect(traffic.Woken, limit); err != nil {
				return err
			}
		}
		if err := w.server.clock.forward(nap.Truncate(time.Millisecond)); err != nil {
			return err
		}
		return w.server.signal(syscall.SIGCONT)
	})
}
