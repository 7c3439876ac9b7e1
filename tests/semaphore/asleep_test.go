package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// The replies to a command get lost, and the machine sleeps before the next try, for longer than Redis keeps the
// record of the command. It is not sent again: it would count twice.
func TestCounts_AreNotRepeatedAfterTheirRecordIsGone(t *testing.T) {
	for what, test := range map[string]struct {
		prepare, count func(s *lockkeeper.System, name string) error
		result         func(s *lockkeeper.System, name string) (int, error)
		want           int
	}{
		"release of a semaphore": {
			prepare: func(s *lockkeeper.System, name string) error {
				_, err := s.Semaphore(name).TrySetPermits(context.Background(), 1, 0)
				return errors.Join(err, s.Semaphore(name).Acquire(context.Background(), 1))
			},
			count: func(s *lockkeeper.System, name string) error {
				return s.Semaphore(name).Release(context.Background(), 1)
			},
			result: func(s *lockkeeper.System, name string) (int, error) {
				return s.Semaphore(name).Available(context.Background())
			},
			want: 1,
		},
		"more permits of a semaphore": {
			prepare: func(s *lockkeeper.System, name string) error {
				_, err := s.Semaphore(name).TrySetPermits(context.Background(), 1, 0)
				return err
			},
			count: func(s *lockkeeper.System, name string) error {
				return s.Semaphore(name).AddPermits(context.Background(), 2)
			},
			result: func(s *lockkeeper.System, name string) (int, error) {
				return s.Semaphore(name).Available(context.Background())
			},
			want: 3,
		},
		"count-down of a latch": {
			prepare: func(s *lockkeeper.System, name string) error {
				_, err := s.Latch(name).TrySetCount(context.Background(), 5)
				return err
			},
			count: func(s *lockkeeper.System, name string) error { return s.Latch(name).CountDown(context.Background()) },
			result: func(s *lockkeeper.System, name string) (int, error) {
				n, err := s.Latch(name).Count(context.Background())
				return int(n), err
			},
			want: 4,
		},
		"more permits that expire": {
			prepare: func(s *lockkeeper.System, name string) error {
				_, err := s.ExpirableSemaphore(name).TrySetPermits(context.Background(), 1)
				return err
			},
			count: func(s *lockkeeper.System, name string) error {
				return s.ExpirableSemaphore(name).AddPermits(context.Background(), 5)
			},
			result: func(s *lockkeeper.System, name string) (int, error) {
				return s.ExpirableSemaphore(name).Total(context.Background())
			},
			want: 6,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server.Addr())
			site, machine := locktest.OpenSuspendable(t, proxy.URL(), lockkeeper.Config{})
			site.SkipCloseCheck = true // Close says that permits may stay taken
			const name = "asleep"
			for _, step := range []func(*lockkeeper.System, string) error{test.prepare, test.count} {
				if err := step(site.System, "before"); err != nil { // then Redis knows the scripts
					t.Fatal(err)
				}
			}
			locktest.OK(t, test.prepare(site.System, name))
			loss := proxy.DropRepliesTo(func(cmd []string) bool { return strings.HasPrefix(strings.ToLower(cmd[0]), "eval") }, 5)
			done := locktest.Go(func() error { return test.count(site.System, name) })
			loss.Wait(t) // the next pause is of 400 ms at least
			machine.Sleep(90 * time.Minute)
			records, err := server.Do(t, "KEYS", "lockkeeper_calls:{"+name+"}*").AsStrSlice()
			if err != nil || len(records) != 1 {
				t.Fatalf("the records are %v: %v", records, err)
			}
			server.Do(t, "DEL", records[0]) // its hour is over
			if err := <-done; !errors.Is(err, lockkeeper.ErrUnavailable) {
				t.Errorf("it ends with %v", err)
			}
			if n, err := test.result(locktest.Open(t, server.URL(), lockkeeper.Config{}).System, name); err != nil || n != test.want {
				t.Errorf("the number is %d, want %d: %v", n, test.want, err)
			}
		})
	}
}
