package expirable

import (
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Ensure answers when the permit of a hold is valid for at least d from now. It is renewed at once if necessary, by an
// extension for the lease of the watchdog; a fixed lease is not renewed.
func (s *Semaphore) Ensure(now Instant, id uint64, d time.Duration, ref any) {
	defer s.begin(now).settle()
	h := s.holdByID(id)
	if h == nil {
		s.refuseOver(id, ref, machine.NotDone)
		return
	}
	left, maxLeft, why := h.end()-s.now, machine.TrustedUntil(0, s.cfg.Watchdog), ""
	switch {
	case left >= d:
		s.effects.Answer(ref, machine.Answer{Kind: machine.Ensured, Until: h.end()})
		return
	case h.fixed || h.maxEnd != 0 && h.maxEnd-s.now < d || h.leaseEnd != 0 && h.leaseEnd-s.now < d:
		why = fmt.Sprintf("only %v of the hold are left, and neither a fixed lease nor a max hold is renewed", left)
	case d > maxLeft:
		why = fmt.Sprintf("%v were asked for, and a renewed lease is good for %v at most", d, maxLeft)
	}
	if why != "" {
		s.effects.Refuse(ref, machine.NotDone, machine.Invalid, why)
		return
	}
	s.addExtension(extension{hold: id, ref: ref, ensures: s.now + d})
}
