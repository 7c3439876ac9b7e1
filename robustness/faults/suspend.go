package faults

import (
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// suspendClients simulates a suspend of the clients' machine while Redis keeps running elsewhere:
// more time passes than on their timers, and on the clock of the histories. Redis is stopped
// until all clocks have moved, so that no command is sent before the suspend and executed after
// it.
func suspendClients(w *World) error {
	return w.during(history.Fault{Name: "suspend the clients", Proc: -1, Hinders: true, ClockJumps: true}, func() error {
		if err := w.server.Signal(syscall.SIGSTOP); err != nil {
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
		return w.server.Signal(syscall.SIGCONT)
	})
}
