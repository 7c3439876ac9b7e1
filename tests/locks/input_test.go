package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestBadNames(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{KeyPrefix: "app:"})
	p := s.Probe(t)
	for name, word := range map[string]string{
		"":                                "empty",
		strings.Repeat("x", 509):          "512",
		strings.Repeat("ж", 255):          "512",
		"\xff":                            "UTF-8",
		"half a rune \xd0":                "UTF-8",
		strings.Repeat("long", 1_000_000): "512",
	} {
		lock := s.Lock(name)
		_, acquire := lock.Acquire(locktest.Within(t))
		_, try := lock.TryAcquire(locktest.Within(t))
		_, force := lock.ForceRelease(locktest.Within(t))
		_, inspect := lock.Inspect(locktest.Within(t))
		for _, err := range []error{acquire, try, force, inspect} {
			if locktest.IsError(t, err, lockkeeper.ErrInvalid) != messages.Reason_REASON_INVALID || !strings.Contains(err.Error(), word) {
				t.Errorf("the error does not say %q: %.200v", word, err)
			}
		}
		for _, request := range locktest.Requests(&messages.Lock{Name: name}) {
			locktest.Refuses(t, p, request, messages.Reason_REASON_INVALID, word)
		}
	}
	for _, name := range []string{"x", " ", "\x00", "\r\n", "*", strings.Repeat("x", 508), strings.Repeat("ж", 254)} {
		s.Passes(t, locktest.Key{Server: server, LockName: name, Name: "app:" + name})
	}
}

// In a cluster, names are refused whose key and channel lie in different slots.
func TestBadNamesInCluster(t *testing.T) {
	t.Parallel()
	server := redistest.Cluster(t, 1)[0]
	s := locktest.Open(t, server.URL(), lockkeeper.Config{})
	for _, name := range []string{"a{b", "a}b", "{}x", "a{}b{c}"} {
		_, err := s.Lock(name).TryAcquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrInvalid)
		locktest.Refuses(t, s.Probe(t), &messages.Acquire{Lock: &messages.Lock{Name: name}}, messages.Reason_REASON_INVALID, "brace")
	}
	for _, name := range []string{"x", "a{b}c", "{a}b"} {
		k := locktest.Key{Server: server, LockName: name, Name: name}
		hold := s.Acquire(t, k)
		k.HeldBy(t, s, "1")
		locktest.Release(t, hold)
		k.IsFree(t)
	}
}

func TestBadTimes(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	const centuries = 200 * 365 * 24 * time.Hour
	for what, options := range map[string][]lockkeeper.Option{
		"the lease is 9.999ms":         {lockkeeper.WithLease(10*time.Millisecond - 1000)},
		"the lease is -1s":             {lockkeeper.WithLease(-time.Second)},
		"the lease is 1752000h":        {lockkeeper.WithLease(centuries)},
		"zero":                         {lockkeeper.WithLease(0)},
		"the max hold is 1ns":          {lockkeeper.WithMaxHold(1)},
		"the max hold is -1s":          {lockkeeper.WithMaxHold(-time.Second)},
		"the max hold is 1752000h":     {lockkeeper.WithMaxHold(centuries)},
		"a max hold of zero":           {lockkeeper.WithMaxHold(0)},
		"the wait is -1ns":             {lockkeeper.WithWait(-1)},
		"exclude each other":           {lockkeeper.WithLease(time.Second), lockkeeper.WithMaxHold(time.Second)},
		"and must not be negative":     {lockkeeper.WithWait(-time.Hour), lockkeeper.WithLease(time.Second)},
		"the lease is -2562047h47m16.": {lockkeeper.WithLease(-1 << 63)},
	} {
		_, err := s.Lock(k.LockName).Acquire(locktest.Within(t), options...)
		locktest.IsError(t, err, lockkeeper.ErrInvalid)
		if !strings.Contains(err.Error(), what) {
			t.Errorf("the error does not say %q: %v", what, err)
		}
	}
	hold := s.Acquire(t, k)
	locktest.IsError(t, hold.Ensure(locktest.Within(t), -1), lockkeeper.ErrInvalid)
	locktest.IsError(t, hold.Ensure(locktest.Within(t), time.Hour), lockkeeper.ErrInvalid)
	if err := hold.Ensure(locktest.Within(t), 29*time.Second); err != nil {
		t.Error(err)
	}
	locktest.Release(t, hold)
	s.Passes(t, k)
}

func TestBadMessages(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	p := s.Probe(t)
	invalid := messages.Reason_REASON_INVALID
	for _, request := range locktest.Requests(nil) {
		locktest.Refuses(t, p, request, invalid, "no lock")
	}
	for _, request := range locktest.Requests(&messages.Lock{Name: k.LockName, Kind: 99}) {
		locktest.Refuses(t, p, request, invalid, "99", "KIND_REENTRANT")
	}
	for _, request := range locktest.Requests(&messages.Lock{Name: k.LockName, Mode: -1}) {
		locktest.Refuses(t, p, request, invalid, "-1", "MODE_EXCLUSIVE")
	}
	for _, request := range []proto.Message{
		(*messages.Acquire)(nil), (*messages.Release)(nil), (*messages.Cancel)(nil), (*messages.ForceRelease)(nil), (*messages.Inspect)(nil),
	} {
		locktest.Refuses(t, p, request, invalid, "no lock")
		s.Actors.Root.Send(s.Guardian(), request) // and nobody to answer to
	}

	future := actor.NewFuture(s.Actors, time.Minute)
	locktest.Refuses(t, p, &messages.Acquire{Lock: k.Message(), Owner: future.PID()}, invalid, "future")
	s.Actors.ProcessRegistry.Remove(future.PID())

	for word, acquire := range map[string]*messages.Acquire{
		"the lease is -1s":           {Lease: durationpb.New(-time.Second)},
		"the lease is zero":          {Lease: durationpb.New(0)},
		"the lease is 1ms":           {Lease: durationpb.New(time.Millisecond)},
		"the lease is not a valid":   {Lease: &durationpb.Duration{Seconds: 1, Nanos: -1}},
		"the wait is -1s":            {Wait: durationpb.New(-time.Second)},
		"the wait is not a valid":    {Wait: &durationpb.Duration{Seconds: 1 << 62}},
		"the max_hold is zero":       {MaxHold: durationpb.New(0)},
		"the max hold is 1ns":        {MaxHold: durationpb.New(1)},
		"the max_hold is not a vali": {MaxHold: &durationpb.Duration{Nanos: 1e9}},
		"exclude each other":         {MaxHold: durationpb.New(time.Second), Lease: durationpb.New(time.Second)},
	} {
		acquire.Lock = k.Message()
		locktest.Refuses(t, p, acquire, invalid, word)
	}

	k.IsFree(t)
	s.Passes(t, k)
	if len(p.Mail) > 0 {
		t.Errorf("answered once more: %v", <-p.Mail)
	}
}

// Whoever cannot be told that he has the lock does not get it.
func TestAcquireForNobody(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	for _, acquire := range []*messages.Acquire{
		{Lock: k.Message()}, {Lock: k.Message(), Wait: durationpb.New(0)}, {Lock: k.Message(), Lease: durationpb.New(time.Minute)},
	} {
		s.Actors.Root.Send(s.Guardian(), acquire)
		s.Passes(t, k)
	}
	dead := s.Probe(t)
	dead.Die()
	dead.Send(&messages.Acquire{Lock: k.Message()})
	s.Passes(t, k)
	dead.Site.Actors.Root.Send(s.Guardian(), &messages.Acquire{Lock: k.Message(), Owner: dead.Pid})
	s.Passes(t, k)
	if status := s.Inspect(t, k); status.HeldHere || status.Waiters > 0 {
		t.Errorf("status %+v", status)
	}
	// An owner that is told, though it did not ask itself.
	p := s.Probe(t)
	s.Actors.Root.Send(s.Guardian(), &messages.Acquire{Lock: k.Message(), Owner: p.Pid})
	granted := locktest.Next[*messages.Acquired](t, p)
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
}

func TestReleaseOfWhatIsNotYours(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s, elsewhere := locktest.Open(t, k.Server.URL(), lockkeeper.Config{}), locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	p, other, stranger := s.Probe(t), s.Probe(t), elsewhere.Probe(t)
	notHeld := messages.Reason_REASON_NOT_HELD
	locktest.Refuses(t, p, &messages.Release{Lock: k.Message()}, notHeld)
	granted := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message()})

	locktest.Refuses(t, other, &messages.Release{Lock: k.Message()}, notHeld)
	locktest.Refuses(t, other, &messages.Release{Lock: k.Message(), Owner: other.Pid}, notHeld)
	locktest.Refuses(t, stranger, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId}, notHeld)
	locktest.Refuses(t, other, &messages.Release{Lock: locktest.NewKey(t, k.Server).Message(), HoldId: granted.HoldId}, notHeld)
	for _, id := range []string{"0", "1", "-1", "!", " ", "zzzzzzzzzzzzzzzzzzzzzzzzzzz", "3w5e11264sgsf", granted.HoldId + "0", "\xff"} {
		locktest.Refuses(t, other, &messages.Release{Lock: k.Message(), HoldId: id}, notHeld)
	}
	s.Actors.Root.Send(s.Guardian(), &messages.Release{Lock: k.Message()})
	if _, err := s.Actors.Root.RequestFuture(s.Guardian(), &messages.Release{Lock: k.Message()}, redistest.Limit).Result(); err != nil {
		t.Error(err)
	}
	k.HeldBy(t, s, "1")

	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: k.Message()})
	locktest.Refuses(t, p, &messages.Release{Lock: k.Message()}, notHeld)
	locktest.Refuses(t, p, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId}, notHeld)
	hold := s.Acquire(t, k)
	locktest.Refuses(t, p, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId}, notHeld)
	k.HeldBy(t, s, "1")

	locktest.Release(t, hold)
	locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrNotHeld)
	locktest.IsError(t, hold.Ensure(locktest.Within(t), 0), lockkeeper.ErrNotHeld)
	if hold.Valid() || hold.Err() == nil || hold.Context().Err() == nil || !errors.Is(context.Cause(hold.Context()), lockkeeper.ErrNotHeld) {
		t.Errorf("after the release: valid %v, error %v, context %v", hold.Valid(), hold.Err(), context.Cause(hold.Context()))
	}
	hold = s.Acquire(t, k)
	locktest.Force(t, s, k)
	locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
	locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrNotHeld)
	locktest.IsError(t, hold.Ensure(locktest.Within(t), 0), lockkeeper.ErrLost)
	s.Passes(t, k)
}
