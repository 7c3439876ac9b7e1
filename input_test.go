package lockkeeper_test

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
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// inTime fails a test whose action takes longer than is bearable for an error.
func inTime(t *testing.T, what string, action func()) {
	t.Helper()
	began := time.Now()
	action()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%s took %v", what, took)
	}
}

// requests are all kinds of requests about a lock.
func requests(lock *messages.Lock) []proto.Message {
	return []proto.Message{
		&messages.Acquire{Lock: lock}, &messages.Release{Lock: lock}, &messages.Cancel{Lock: lock},
		&messages.ForceRelease{Lock: lock}, &messages.Inspect{Lock: lock},
	}
}

// refusal is what all answers that say no have in common.
type refusal interface {
	GetReason() messages.Reason
	GetDetail() string
}

// refuses sends a request and expects to be refused, and told why.
func refuses(t *testing.T, p *probe, request proto.Message, want messages.Reason, words ...string) {
	t.Helper()
	answer := ask[refusal](t, p, request)
	if answer.GetReason() != want {
		t.Errorf("%T{%v}: answered %T{%v}, want %v", request, request, answer, answer, want)
	}
	for _, word := range words {
		if !strings.Contains(answer.GetDetail(), word) {
			t.Errorf("%T{%v}: the detail %q does not say %q", request, request, answer.GetDetail(), word)
		}
	}
}

func TestBadNames(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := open(t, server.URL(), lockkeeper.Config{KeyPrefix: "app:"})
	p := s.probe(t)
	for name, word := range map[string]string{
		"":                                "empty",
		strings.Repeat("x", 509):          "512",
		strings.Repeat("ж", 255):          "512",
		"\xff":                            "UTF-8",
		"half a rune \xd0":                "UTF-8",
		strings.Repeat("long", 1_000_000): "512",
	} {
		lock := s.Lock(name)
		_, acquire := lock.Acquire(within(t))
		_, try := lock.TryAcquire(within(t))
		_, force := lock.ForceRelease(within(t))
		_, inspect := lock.Inspect(within(t))
		for _, err := range []error{acquire, try, force, inspect} {
			if isError(t, err, lockkeeper.ErrInvalid) != messages.Reason_REASON_INVALID || !strings.Contains(err.Error(), word) {
				t.Errorf("the error does not say %q: %.200v", word, err)
			}
		}
		for _, request := range requests(&messages.Lock{Name: name}) {
			refuses(t, p, request, messages.Reason_REASON_INVALID, word)
		}
	}
	for _, name := range []string{"x", " ", "\x00", "\r\n", "*", strings.Repeat("x", 508), strings.Repeat("ж", 254)} {
		s.passes(t, key{server: server, lock: name, name: "app:" + name})
	}
}

// In a cluster, names are refused whose key and channel lie in different slots.
func TestBadNamesInCluster(t *testing.T) {
	t.Parallel()
	server := redistest.Cluster(t, 1)[0]
	s := open(t, server.URL(), lockkeeper.Config{})
	for _, name := range []string{"a{b", "a}b", "{}x", "a{}b{c}"} {
		_, err := s.Lock(name).TryAcquire(within(t))
		isError(t, err, lockkeeper.ErrInvalid)
		refuses(t, s.probe(t), &messages.Acquire{Lock: &messages.Lock{Name: name}}, messages.Reason_REASON_INVALID, "brace")
	}
	for _, name := range []string{"x", "a{b}c", "{a}b"} {
		k := key{server: server, lock: name, name: name}
		hold := s.acquire(t, k)
		k.heldBy(t, s, "1")
		release(t, hold)
		k.isFree(t)
	}
}

func TestBadTimes(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
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
		_, err := s.Lock(k.lock).Acquire(within(t), options...)
		isError(t, err, lockkeeper.ErrInvalid)
		if !strings.Contains(err.Error(), what) {
			t.Errorf("the error does not say %q: %v", what, err)
		}
	}
	hold := s.acquire(t, k)
	isError(t, hold.Ensure(within(t), -1), lockkeeper.ErrInvalid)
	isError(t, hold.Ensure(within(t), time.Hour), lockkeeper.ErrInvalid)
	if err := hold.Ensure(within(t), 29*time.Second); err != nil {
		t.Error(err)
	}
	release(t, hold)
	s.passes(t, k)
}

func TestBadMessages(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	p := s.probe(t)
	invalid := messages.Reason_REASON_INVALID
	for _, request := range requests(nil) {
		refuses(t, p, request, invalid, "no lock")
	}
	for _, request := range requests(&messages.Lock{Name: k.lock, Kind: 99}) {
		refuses(t, p, request, invalid, "99", "KIND_REENTRANT")
	}
	for _, request := range requests(&messages.Lock{Name: k.lock, Mode: -1}) {
		refuses(t, p, request, invalid, "-1", "MODE_EXCLUSIVE")
	}
	for _, request := range []proto.Message{
		(*messages.Acquire)(nil), (*messages.Release)(nil), (*messages.Cancel)(nil), (*messages.ForceRelease)(nil), (*messages.Inspect)(nil),
	} {
		refuses(t, p, request, invalid, "no lock")
		s.actors.Root.Send(s.Guardian(), request) // and nobody to answer to
	}

	future := actor.NewFuture(s.actors, time.Minute)
	refuses(t, p, &messages.Acquire{Lock: k.message(), Owner: future.PID()}, invalid, "future")
	s.actors.ProcessRegistry.Remove(future.PID())

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
		acquire.Lock = k.message()
		refuses(t, p, acquire, invalid, word)
	}

	k.isFree(t)
	s.passes(t, k)
	if len(p.mail) > 0 {
		t.Errorf("answered once more: %v", <-p.mail)
	}
}

// Whoever cannot be told that he has the lock does not get it.
func TestAcquireForNobody(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	for _, acquire := range []*messages.Acquire{
		{Lock: k.message()}, {Lock: k.message(), Wait: durationpb.New(0)}, {Lock: k.message(), Lease: durationpb.New(time.Minute)},
	} {
		s.actors.Root.Send(s.Guardian(), acquire)
		s.passes(t, k)
	}
	dead := s.probe(t)
	dead.die()
	dead.send(&messages.Acquire{Lock: k.message()})
	s.passes(t, k)
	dead.site.actors.Root.Send(s.Guardian(), &messages.Acquire{Lock: k.message(), Owner: dead.pid})
	s.passes(t, k)
	if status := s.inspect(t, k); status.HeldHere || status.Waiters > 0 {
		t.Errorf("status %+v", status)
	}
	// An owner that is told, though it did not ask itself.
	p := s.probe(t)
	s.actors.Root.Send(s.Guardian(), &messages.Acquire{Lock: k.message(), Owner: p.pid})
	granted := next[*messages.Acquired](t, p)
	ask[*messages.Released](t, p, &messages.Release{Lock: k.message(), HoldId: granted.HoldId})
}

func TestReleaseOfWhatIsNotYours(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s, elsewhere := open(t, k.server.URL(), lockkeeper.Config{}), open(t, k.server.URL(), lockkeeper.Config{})
	p, other, stranger := s.probe(t), s.probe(t), elsewhere.probe(t)
	notHeld := messages.Reason_REASON_NOT_HELD
	refuses(t, p, &messages.Release{Lock: k.message()}, notHeld)
	granted := ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message()})

	refuses(t, other, &messages.Release{Lock: k.message()}, notHeld)
	refuses(t, other, &messages.Release{Lock: k.message(), Owner: other.pid}, notHeld)
	refuses(t, stranger, &messages.Release{Lock: k.message(), HoldId: granted.HoldId}, notHeld)
	refuses(t, other, &messages.Release{Lock: newKey(t, k.server).message(), HoldId: granted.HoldId}, notHeld)
	for _, id := range []string{"0", "1", "-1", "!", " ", "zzzzzzzzzzzzzzzzzzzzzzzzzzz", "3w5e11264sgsf", granted.HoldId + "0", "\xff"} {
		refuses(t, other, &messages.Release{Lock: k.message(), HoldId: id}, notHeld)
	}
	s.actors.Root.Send(s.Guardian(), &messages.Release{Lock: k.message()})
	if _, err := s.actors.Root.RequestFuture(s.Guardian(), &messages.Release{Lock: k.message()}, redistest.Limit).Result(); err != nil {
		t.Error(err)
	}
	k.heldBy(t, s, "1")

	ask[*messages.Released](t, p, &messages.Release{Lock: k.message()})
	refuses(t, p, &messages.Release{Lock: k.message()}, notHeld)
	refuses(t, p, &messages.Release{Lock: k.message(), HoldId: granted.HoldId}, notHeld)
	hold := s.acquire(t, k)
	refuses(t, p, &messages.Release{Lock: k.message(), HoldId: granted.HoldId}, notHeld)
	k.heldBy(t, s, "1")

	release(t, hold)
	isError(t, hold.Release(within(t)), lockkeeper.ErrNotHeld)
	isError(t, hold.Ensure(within(t), 0), lockkeeper.ErrNotHeld)
	if hold.Valid() || hold.Err() == nil || hold.Context().Err() == nil || !errors.Is(context.Cause(hold.Context()), lockkeeper.ErrNotHeld) {
		t.Errorf("after the release: valid %v, error %v, context %v", hold.Valid(), hold.Err(), context.Cause(hold.Context()))
	}
	hold = s.acquire(t, k)
	force(t, s, k)
	isError(t, hold.Release(within(t)), lockkeeper.ErrLost)
	isError(t, hold.Release(within(t)), lockkeeper.ErrNotHeld)
	isError(t, hold.Ensure(within(t), 0), lockkeeper.ErrLost)
	s.passes(t, k)
}
