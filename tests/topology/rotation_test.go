package topology_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// The password of the Redis user is replaced while one process holds a lock and another waits for it, and all
// connections are opened anew: nothing is lost. docs/kubernetes.md describes these steps.
func TestRotation_LosesNoLock(t *testing.T) {
	t.Parallel()
	for protocol, option := range map[string]string{"RESP3": "", "RESP2": "&protocol=2"} {
		t.Run(protocol, func(t *testing.T) { rotate(t, option) })
	}
}

func rotate(t *testing.T, option string) {
	t.Helper()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "locker", "on", ">old", "+@all", "~*", "&*")
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) { locktest.OK(t, os.WriteFile(file, []byte(password+"\n"), 0o600)) }
	write("old")
	open := func() *lockkeeper.Lock {
		sys, err := lockkeeper.Open(locktest.Within(t), "redis://locker@"+server.Addr()+"?password_file="+url.QueryEscape(file)+option,
			lockkeeper.WithConfig(lockkeeper.Config{Watchdog: time.Minute, Poll: time.Hour}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sys.Close(locktest.Within(t)) })
		return sys.Lock("rotated")
	}
	holds, waits := open(), open()
	hold := locktest.Acquire(t, holds)
	waiter := locktest.AcquireSoon(locktest.Within(t), waits)
	locktest.Key{Server: server, LockName: "rotated", Channel: "redisson_lock__channel:{rotated}"}.AwaitSubscribers(t, 1)

	server.Do(t, "ACL", "SETUSER", "locker", ">new") // both are good
	write("new")
	server.Do(t, "ACL", "SETUSER", "locker", "<old") // connections stay
	for _, kind := range []string{"pubsub", "normal"} {
		server.Do(t, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
	}
	// It renews the lease, once it has noticed that its connection has ended.
	redistest.Eventually(t, "a renewal", func() bool { return hold.Ensure(locktest.Within(t), 58*time.Second) == nil })
	locktest.Release(t, hold)
	next := locktest.Got(t, waiter).Hold
	locktest.Release(t, next)
}
