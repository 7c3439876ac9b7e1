package kinds_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A field that another application adds to the hash of a lock while it is held stays when the hold ends, without the
// TTL that was the lease of the hold.
func TestForeignField_StaysAfterRelease(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for kind, of := range locktest.Kinds {
		for _, waits := range []bool{false, true} {
			t.Run(kind+map[bool]string{true: ", a client waits"}[waits], func(t *testing.T) {
				t.Parallel()
				k := locktest.NewKey(t, server)
				s := locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: 300 * time.Millisecond})
				hold := locktest.Acquire(t, of(s, k.LockName))
				k.Do(t, "HSET", k.Name, "email", "tiger")
				k.Do(t, "PERSIST", k.Name)
				redistest.Eventually(t, "a renewal", func() bool { return k.Ttl(t) > 0 })
				if waits {
					b := locktest.Open(t, server.URL(), locktest.NoPolling)
					waiting := locktest.AcquireSoon(t.Context(), of(b, k.LockName))
					locktest.ExpectEnd(t, waiting, lockkeeper.ErrRejected)
				}
				locktest.Release(t, hold)
				if got := k.Owners(t); got["email"] != "tiger" || k.Ttl(t) >= 0 {
					t.Errorf("the key has become %v, and lasts for %v", got, k.Ttl(t))
				}
			})
		}
	}
}

// A field of a wait queue that is not an entry of a client, or would last for longer than any, keeps no free lock.
func TestForeignEntry_KeepsNoLock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const client = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88"
	for what, entry := range map[string][2]string{
		"no client": {"foo", "30000 1 1 0 0 0 0"}, "capitals": {"9F1C8F0A-6B1D-4A53-9A5E-2F4B7C1D0E88", "30000 1 1 0 0 0 0"},
		"a prefix": {client + ":1", "30000 1 1 0 0 0 0"}, "centuries": {client, "9999999999999 1 1 0 0 0 0"}, "two days": {client, "172800000 1 1 0 0 0 0"},
	} {
		for _, kind := range []string{"plain", "fenced", "read", "write"} {
			t.Run(kind+"/"+what, func(t *testing.T) {
				t.Parallel()
				k, s := locktest.NewKey(t, server), locktest.Open(t, server.URL(), locktest.NoPolling)
				k.Atomically(t, `local c = redis.call('TIME'); local now = string.format('%.0f', c[1] * 1000000 + c[2])
					redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. now .. ' ' .. ARGV[2])`, []string{locktest.WaitQueue(kind, k.Name)}, entry[0], entry[1])
				locktest.Release(t, locktest.Acquire(t, locktest.Kinds[kind](s, k.LockName)))
				if queue, _ := k.Do(t, "HGETALL", locktest.WaitQueue(kind, k.Name)).AsStrMap(); len(queue) > 0 {
					t.Errorf("the wait queue has %v", queue)
				}
			})
		}
	}
}
