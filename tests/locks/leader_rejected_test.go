package locks_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// rejections counts the lines which say that a rejected candidate waits.
type rejections struct{ atomic.Int64 }

func (r *rejections) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "Redis rejects a candidate, and this process waits") {
		r.Add(1)
	}
	return len(line), nil
}

// Redis rejects a candidate that waits, for a password or a right that is wrong for a while. It leads when Redis
// accepts it again, and the log has the rejection once. If it resigns meanwhile, it returns the rejection.
func TestLeader_WaitsAgainAfterARejection(t *testing.T) {
	t.Parallel()
	const callTimeout = 5 * time.Second // a rejection that takes longer counts as another one
	server := redistest.Start(t)
	for what, change := range map[string][2]string{
		"password": {"resetpass >other", "resetpass >pw"},
		"right":    {"-@all", "+@all"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			set := func(rules string) {
				server.Do(t, append([]string{"ACL", "SETUSER", what}, strings.Fields(rules)...)...)
				server.Do(t, "CLIENT", "KILL", "USER", what)
			}
			set("on >pw ~* &* +@all")
			var lines rejections
			s := locktest.Open(t, locktest.URLAs(server, what, "pw"), lockkeeper.Config{
				CallTimeout: callTimeout, Poll: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
			})
			s.SkipCloseCheck = true // what was to be taken back was rejected
			leads := make(chan string, 10)
			ended := lockkeeper.WithEnded(func(err error) {
				if err != nil {
					leads <- err.Error()
				}
			})
			work := func(by string) func(context.Context) error {
				return func(context.Context) error { leads <- by; return nil }
			}
			child := func(by string) func(context.Context) *actor.Props {
				return func(context.Context) *actor.Props {
					leads <- by
					return actor.PropsFromFunc(func(actor.Context) {})
				}
			}
			k := locktest.NewKey(t, server)
			var resign func(context.Context) error
			candidates := map[string]func(l *lockkeeper.Lock){
				"Elect": func(l *lockkeeper.Lock) {
					locktest.Go(func() error { return l.Elect(locktest.Within(t), work("Elect"), ended) })
				},
				"Lead":   func(l *lockkeeper.Lock) { l.Lead(work("Lead"), ended) },
				"resign": func(l *lockkeeper.Lock) { resign = l.Lead(work("resign"), ended) },
				"LeaderProps": func(l *lockkeeper.Lock) {
					s.Actors.Root.Spawn(l.LeaderProps(child("LeaderProps"), ended))
				},
				"Singleton": func(l *lockkeeper.Lock) {
					s.Actors.Root.Spawn(s.Singleton(l.Name()).Props(child("Singleton"), ended))
				},
			}
			held := map[string]locktest.Key{}
			for by, begin := range candidates {
				lock := locktest.KeyOf(server, k.LockName+by)
				lock.TakeAs(t, locktest.Redisson, -1)
				held[by] = lock
				begin(s.FencedLock(lock.LockName))
			}
			for by := range candidates {
				redistest.Eventually(t, "an accepted candidate", func() bool {
					status, err := s.FencedLock(k.LockName + by).Inspect(locktest.Within(t))
					return err == nil && status.WaitingFor > callTimeout
				})
			}
			set(change[0])
			redistest.Eventually(t, "the rejections", func() bool { return int(lines.Load()) == len(candidates) })
			for _, lock := range held {
				lock.Unlock(t)
			}
			locktest.IsError(t, resign(locktest.Within(t)), lockkeeper.ErrRejected)
			set(change[1])
			delete(candidates, "resign")
			for range len(candidates) {
				by := locktest.Await(t, "a leader", leads)
				if candidates[by] == nil {
					t.Fatalf("%s leads, or ends", by)
				}
				delete(candidates, by)
			}
			locktest.Equal(t, int(lines.Load()), len(held), "the log has %d rejections")
		})
	}
}
