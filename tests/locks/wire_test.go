package locks_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

var ownerField = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]*$`)

// A foreign client sees the same keys as Redisson would write, with the same names, and receives only the message of
// the last release.
func TestWire_WritesTheStateOfRedisson(t *testing.T) {
	t.Parallel()
	unique := redistest.Name(t)
	for what, test := range map[string]struct{ prefix, lock, channel string }{
		"plain":             {"", unique, "redisson_lock__channel:{" + unique + "}"},
		"a tag":             {"", unique + "{tag}x", "redisson_lock__channel:" + unique + "{tag}x"},
		"an open brace":     {"", unique + "{x", "redisson_lock__channel:" + unique + "{x"},
		"a closing brace":   {"", unique + "}x", "redisson_lock__channel:{" + unique + "}x}"},
		"no ASCII":          {"", unique + "замок 🔒", "redisson_lock__channel:{" + unique + "замок 🔒}"},
		"a prefix":          {"app:", unique, "redisson_lock__channel:{app:" + unique + "}"},
		"a prefix with tag": {"{app}:", unique, "redisson_lock__channel:{app}:" + unique},
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Shared(t)
			k := locktest.Key{Server: server, LockName: test.lock, Name: test.prefix + test.lock, Channel: test.channel}
			s := locktest.Open(t, server.URL(), lockkeeper.Config{KeyPrefix: test.prefix})
			listener := k.Listen(t)
			for lease, options := range map[time.Duration][]lockkeeper.Option{
				30 * time.Second: nil, 10 * time.Second: {lockkeeper.WithLease(10 * time.Second)},
			} {
				outer := s.Acquire(t, k, options...)
				if owner := k.HeldBy(t, s, "1"); !ownerField.MatchString(owner) {
					t.Errorf("the owner is %q", owner)
				}
				inner := s.AcquireIn(t, outer.Context(), k)
				k.HeldBy(t, s, "2")
				if ttl := k.TTL(t); ttl > lease || ttl < lease-5*time.Second {
					t.Errorf("TTL %v, want %v", ttl, lease)
				}
				locktest.Release(t, inner)
				k.HeldBy(t, s, "1")
				if got := listener.Messages(t); len(got) > 0 {
					t.Errorf("published %q while the lock was held", got)
				}
				locktest.Release(t, outer)
				k.IsFree(t)
				if got := listener.Messages(t); !slices.Equal(got, []string{"0"}) {
					t.Errorf("published %q at the release, want one 0", got)
				}
			}
		})
	}
}

func TestWire_RespectsForeignHolder(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	k.TakeAs(t, locktest.Redisson, 30*time.Second)
	locktest.Fails(s.Lock(k.LockName).TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrHeld, locktest.Redisson)
	refused := locktest.Ask[*messages.NotAcquired](t, s.Probe(t), &messages.Acquire{Lock: k.Message(), Wait: durationpb.New(0)})
	if refused.Reason != messages.Reason_REASON_HELD || refused.Lock.GetName() != k.LockName {
		t.Errorf("refused with %v", refused)
	}
	if ttl := refused.Ttl.AsDuration(); ttl > 30*time.Second || ttl < 20*time.Second {
		t.Errorf("refused with the TTL %v, want 30s", ttl)
	}
	locktest.Fails(s.Lock(k.LockName).Acquire(locktest.Within(t), lockkeeper.WithWait(300*time.Millisecond)))(t, lockkeeper.ErrTimeout)
	status := s.Inspect(t, k)
	if !status.Locked || status.HeldHere || status.Holder != locktest.Redisson || status.HoldCount != 1 || status.TTL < 20*time.Second {
		t.Errorf("status %+v", status)
	}
}
