package locktest

import (
	"reflect"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Remote is a site that reaches its Redis through a proxy.
type Remote struct {
	*Site
	Key
	Proxy *redistest.Proxy
}

// NewRemote opens a site behind a proxy. Its client detects dead connections within a second.
func NewRemote(t testing.TB, server *redistest.Server, cfg lockkeeper.Config, inject ...actor.ReceiverMiddleware) *Remote {
	t.Helper()
	proxy := redistest.NewProxy(t, server.Addr())
	for _, script := range scripts.All { // so that no first try misses its script
		OK(t, server.Do(t, "SCRIPT", "LOAD", script.Source).Error())
	}
	return &Remote{Open(t, proxy.URL()+"?write_timeout=1s", cfg, inject...), NewKey(t, server), proxy}
}

// WithLostReplies runs a scenario in which replies to a script are lost in each mode, and checks that
// nothing is left in Redis or in the process.
func WithLostReplies(t *testing.T, script *scripts.Script, cfg lockkeeper.Config,
	scenario func(t *testing.T, r *Remote, lose func() *redistest.Loss)) {
	for what, how := range map[string]struct {
		mode    redistest.Mode
		lending bool
	}{
		"lost": {redistest.Lost, false}, "lost and lending": {redistest.Lost, true},
		"silent": {redistest.Silent, false}, "silent and lending": {redistest.Silent, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			if how.mode == redistest.Lost { // the client notices at once: no call has to time out
				cfg.CallTimeout = Soon
			}
			r := NewRemote(t, redistest.Shared(t), cfg)
			r.lendGoroutines = how.lending
			var losses []*redistest.Loss
			scenario(t, r, func() *redistest.Loss {
				loss := r.Proxy.DropRepliesTo(redistest.Script(script.SHA), 1, how.mode)
				losses = append(losses, loss)
				return loss
			})
			for _, loss := range losses {
				loss.Wait(t) // otherwise the test has tested nothing
			}
			r.IsFree(t)
			r.ExpectGranted(t, r.Key)
			redistest.Eventually(t, "nothing to be left", func() bool {
				status, err := r.Lock(r.LockName).Inspect(Within(t))
				return err == nil && reflect.DeepEqual(status, lockkeeper.Status{TTL: -1})
			})
		})
	}
}

// Isolate freezes the connection of a remote, calls breakIt, and returns when the keys of the guards
// expire if nothing renews them.
func (r *Remote) Isolate(t testing.TB, guards []*Guard, breakIt func()) (ends []time.Time) {
	t.Helper()
	r.Proxy.Freeze(true)
	for range 2 { // the first waits for commands that were under way
		ends = nil
		for _, g := range guards {
			ends = append(ends, g.Expiry(t))
		}
	}
	breakIt()
	return ends
}
