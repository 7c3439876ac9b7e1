package kinds_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// busy is a Redis in which the script of another application runs until end is called: it refuses commands.
func busy(t *testing.T, server *redistest.Server) (end func()) {
	t.Helper()
	client, ended := locktest.Connect(t, server.URL()), make(chan struct{})
	t.Cleanup(client.Close)
	go func() {
		defer close(ended)
		client.Do(t.Context(), client.B().Eval().Script("while true do end").Numkeys(0).Build())
	}()
	redistest.Eventually(t, "Redis is busy", func() bool {
		err := server.Do(t, "GET", "x").Error()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	return func() {
		server.Do(t, "SCRIPT", "KILL")
		<-ended
	}
}

// A forced release that names no owner is refused for the moment, and then the machine sleeps. It is not sent again when
// its call should have ended long ago: it would free the holder of the next morning.
func TestForcedReleaseIsNotSentAgainAfterItsTime(t *testing.T) {
	for kind, of := range locktest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--lua-time-limit", "10")
			proxy := redistest.NewProxy(t, server.Addr())
			var machine *boottime.Suspendable
			operator := locktest.OpenWith(t, locktest.Connect(t, proxy.URL()), nil, lockkeeper.Config{}, func(s *actor.ActorSystem) { machine = boottime.Install(s) })
			other := locktest.Open(t, server.URL(), lockkeeper.Config{})
			const name = "force"
			if _, err := of(operator, name).Inspect(locktest.Within(t)); err != nil { // then Redis knows the script
				t.Fatal(err)
			}
			stuck := locktest.Acquire(t, of(other, name))
			end := busy(t, server)
			var tries atomic.Int32
			proxy.DropRepliesTo(func(cmd []string) bool {
				if strings.HasPrefix(strings.ToLower(cmd[0]), "eval") {
					tries.Add(1)
				}
				return false
			}, 1)
			freed := make(chan error, 1)
			go func() {
				_, err := of(operator, name).ForceRelease(locktest.Within(t))
				freed <- err
			}()
			redistest.Eventually(t, "it was tried several times", func() bool { return tries.Load() >= 5 })
			machine.Sleep(8 * time.Hour)
			end()
			locktest.Release(t, stuck)
			next := locktest.Acquire(t, of(other, name))
			locktest.IsError(t, <-freed, lockkeeper.ErrUnavailable)
			locktest.Ensure(t, next, 29690*time.Millisecond) // which asks Redis
			locktest.ExpectValid(t, next)
			locktest.Release(t, next)
		})
	}
}

// A forced release is answered within CallTimeout and 250 ms, also if a try fails shortly before that.
func TestForcedReleaseIsAnsweredInTime(t *testing.T) {
	for kind, of := range locktest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--lua-time-limit", "10")
			const most = 2 * time.Second
			s := locktest.Open(t, server.URL(), lockkeeper.Config{CallTimeout: most})
			if _, err := of(s, "force").Inspect(locktest.Within(t)); err != nil {
				t.Fatal(err)
			}
			end := busy(t, server)
			timer := time.AfterFunc(most*9/10, func() { server.Pause(t) })
			defer timer.Stop()
			began := time.Now()
			_, err := of(s, "force").ForceRelease(locktest.Within(t))
			took := time.Since(began)
			server.Resume(t)
			end()
			locktest.IsError(t, err, lockkeeper.ErrUnavailable)
			if took > most+time.Second {
				t.Errorf("it has taken %v", took)
			}
		})
	}
}
