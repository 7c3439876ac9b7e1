package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// The key of the ids that a latch has counted may belong to another application. Only CountDownOnce needs it.
func TestForeignLatchIDs_FailOnlyCountDownOnce(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	for kind, write := range foreignTypes {
		k := locktest.NewKey(t, redistest.Shared(t))
		unchanged := foreignKey(t, k, keyspace.Counted(k.Name), write...)
		latch, ctx := s.Latch(k.LockName), locktest.Within(t)
		_, count := latch.Count(ctx)
		unchanged(kind + ": Count")
		wait := latch.Wait(ctx)
		unchanged(kind + ": Wait")
		_, set := latch.TrySetCount(ctx, 2)
		down := latch.CountDown(ctx)
		unchanged(kind + ": CountDown")
		locktest.IsError(t, latch.CountDownOnce(ctx, "id"), lockkeeper.ErrRejected, "WRONGTYPE")
		unchanged(kind + ": CountDownOnce")
		opens := latch.CountDown(ctx)
		unchanged(kind + ": CountDown that opens")
		if err := errors.Join(count, wait, set, down, opens); err != nil || k.Exists(t) {
			t.Errorf("%s: %v, and the latch is open: %v", kind, err, !k.Exists(t))
		}
	}
}

// The sorted set of permits that are taken may belong to another application, with any members and scores.
func TestForeignPermits_AreRefusedAndUnchanged(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	for _, members := range [][]string{
		{"1e15", "0123456789abcdef", "2e15", "ann"},
		{"-5", "ann", "1e15", "0123456789abcdef"},
		{"1e15", ""},
		{"1e14", "0123456789abcdef", "1e15", ""},
		{"1", "0123456789abcdef", "2", "0123456789abcdeg", "3e15", "bert"},
	} {
		k := locktest.NewKey(t, redistest.Shared(t))
		k.Do(t, "SET", k.Name, "3")
		unchanged := foreignKey(t, k, keyspace.Taken(k.Name), append([]string{"ZADD"}, members...)...)
		p, ctx := s.ExpirableSemaphore(k.LockName), locktest.Within(t)
		locktest.Fails(p.TryAcquire(ctx))(t, lockkeeper.ErrRejected, "WRONGTYPE")
		unchanged(fmt.Sprint(members, ": TryAcquire"))
		locktest.IsError(t, p.SetPermits(ctx, 9), lockkeeper.ErrRejected, "WRONGTYPE")
		locktest.Fails(p.Available(ctx))(t, lockkeeper.ErrRejected, "WRONGTYPE")
		unchanged(fmt.Sprint(members))
	}
}

// A Delete checks all members of the set that it deletes, also one among very many permits that have expired.
func TestForeignPermit_AmongManyIsNotDeleted(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	k := locktest.NewKey(t, redistest.Shared(t))
	k.Do(t, "SET", k.Name, "0")
	members := []string{"ZADD", "1250.5", "another application's"}
	for i := range 1500 {
		members = append(members, fmt.Sprint(i), fmt.Sprintf("%016d", i))
	}
	unchanged := foreignKey(t, k, keyspace.Taken(k.Name), members...)
	locktest.Fails(s.ExpirableSemaphore(k.LockName).Delete(locktest.Within(t)))(t, lockkeeper.ErrRejected, "WRONGTYPE")
	unchanged("Delete")
	k.Do(t, "ZREM", keyspace.Taken(k.Name), members[2])
	if deleted, err := s.ExpirableSemaphore(k.LockName).Delete(locktest.Within(t)); !deleted || err != nil || k.Exists(t) {
		t.Errorf("deleted %v, %v", deleted, err)
	}
}

// The time at which a number of permits is set again is ours only if it has our form and lies within the TTL of its
// key. Any other value is refused at once: it is not waited for, and not taken for a time that has passed.
func TestForeignRestoreTime_IsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: 300 * time.Millisecond, Poll: 100 * time.Millisecond})
	writes := map[string][]string{}
	for kind, write := range foreignTypes {
		writes[kind] = write
	}
	for _, value := range []string{"99999999999999999", "9007199254740991", "9223372036854775807", "7", "-7", "0", "", "12:30:45:10", "a:b:9007199254740991:0"} {
		writes["value "+value] = []string{"SET", value}
		writes["value "+value+" with a TTL"] = []string{"SET", value, "PX", "100000"}
	}
	for kind, write := range writes {
		k := locktest.NewKey(t, server)
		key := keyspace.Calls(k.Name) + ":restore"
		unchanged := foreignKey(t, k, key, write...)
		_, err := s.ExpirableSemaphore(k.LockName).WithTotal(3).Acquire(locktest.Within(t))
		if !errors.Is(err, lockkeeper.ErrRejected) || strings.Contains(err.Error(), "tiger") {
			t.Errorf("%s: %v", kind, err)
		}
		unchanged(kind)
		if k.Exists(t) {
			t.Errorf("%s: the number is set", kind)
		}
	}
}

// The memory of a RedLock's server may be a key of another application.
func TestForeignMemory_RefusesRedLock(t *testing.T) {
	t.Parallel()
	for kind, write := range foreignTypes {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var systems []*lockkeeper.System
			var checks []func(string)
			for range 3 {
				k := locktest.NewKey(t, redistest.Start(t))
				checks = append(checks, foreignKey(t, k, keyspace.Memory(""), write...))
				systems = append(systems, locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: time.Second}).System)
			}
			red := locktest.Must(lockkeeper.NewRedLock(systems...))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			locktest.Fails(red.Lock("x").Acquire(ctx))(t, lockkeeper.ErrRejected, "WRONGTYPE")
			for _, unchanged := range checks {
				unchanged("Acquire")
			}
		})
	}
}
