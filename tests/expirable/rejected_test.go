package expirable_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A release has no reply, and its next try is rejected for a reason that does not pass. The error does not say that
// the permit is still taken, and the permit goes back.
func TestExpirable_RejectedRepetitionMayHaveReleased(t *testing.T) {
	t.Parallel()
	releases := redistest.Script(scripts.ExpirableRelease.SHA)
	for what, lose := range map[string]func(t *testing.T, p *redistest.Proxy) (await func()){
		"the first try has run": func(t *testing.T, p *redistest.Proxy) func() {
			loss := p.DropRepliesTo(releases, 1, redistest.Silent)
			return func() { loss.Wait(t) }
		},
		"the first try was lost": func(t *testing.T, p *redistest.Proxy) func() {
			held := p.Hold(releases, redistest.Silent)
			return func() { held.Wait(t) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg := locktest.ShortCallTimeout
			cfg.CallTimeout = 3 * time.Second // in which a busy machine rejects the next try, too
			s := locktest.NewRemote(t, redistest.Start(t), cfg)
			p := s.ExpirableSemaphore(s.LockName)
			locktest.Must(p.TrySetPermits(locktest.Within(t), 1))(t)
			permit := locktest.Must(p.Acquire(locktest.Within(t), lockkeeper.WithLease(time.Hour)))(t)
			await := lose(t, s.Proxy)
			released := locktest.Go(func() error { return permit.Release(locktest.Within(t)) })
			await()
			locktest.OK(t, s.Do(t, "ACL", "SETUSER", "default", "-evalsha", "-eval").Error())
			err := locktest.Await(t, "the release", released)
			locktest.OK(t, s.Do(t, "ACL", "SETUSER", "default", "+@all").Error())
			locktest.IsError(t, err, lockkeeper.ErrUnavailable, "may have been released")
			awaitPermits(t, p, 1, 0)
		})
	}
}
