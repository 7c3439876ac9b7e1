package locks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

const centuries = 200 * 365 * 24 * time.Hour

// The fuzz tests find out which input is refused. These tests check the texts of the errors, by call and by message.

func TestInput_RefusesInvalidTimes(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	type options = []lockkeeper.Option
	for word, c := range map[string]struct {
		options options
		message *messages.Acquire
	}{
		"the lease is 9.999ms":     {options{lockkeeper.WithLease(9999 * time.Microsecond)}, &messages.Acquire{Lease: durationpb.New(9999 * time.Microsecond)}},
		"the lease is -1s":         {options{lockkeeper.WithLease(-time.Second)}, &messages.Acquire{Lease: durationpb.New(-time.Second)}},
		"the lease is 1752000h":    {options{lockkeeper.WithLease(centuries)}, &messages.Acquire{Lease: durationpb.New(centuries)}},
		"the max hold is 1ns":      {options{lockkeeper.WithMaxHold(1)}, &messages.Acquire{MaxHold: durationpb.New(1)}},
		"the max hold is 1752000h": {options{lockkeeper.WithMaxHold(centuries)}, &messages.Acquire{MaxHold: durationpb.New(centuries)}},
		"the wait is -1s":          {options{lockkeeper.WithWait(-time.Second)}, &messages.Acquire{Wait: durationpb.New(-time.Second)}},
		"zero":                     {options{lockkeeper.WithLease(0)}, &messages.Acquire{Lease: durationpb.New(0)}},
		"is zero":                  {nil, &messages.Acquire{MaxHold: durationpb.New(0)}},
		"of zero":                  {options{lockkeeper.WithMaxHold(0)}, nil},
		"exclude each other": {options{lockkeeper.WithLease(time.Second), lockkeeper.WithMaxHold(time.Second)},
			&messages.Acquire{MaxHold: durationpb.New(time.Second), Lease: durationpb.New(time.Second)}},
		"the lease is not a valid":   {nil, &messages.Acquire{Lease: &durationpb.Duration{Seconds: 1, Nanos: -1}}},
		"the wait is not a valid":    {nil, &messages.Acquire{Wait: &durationpb.Duration{Seconds: 1 << 62}}},
		"the max_hold is not a vali": {nil, &messages.Acquire{MaxHold: &durationpb.Duration{Nanos: 1e9}}},
	} {
		if c.options != nil {
			locktest.Fails(s.Lock(k.LockName).Acquire(locktest.Within(t), c.options...))(t, lockkeeper.ErrInvalid, word)
		}
		if c.message != nil {
			c.message.Lock = k.Message()
			locktest.ExpectRefusal(t, s.Probe(t), c.message, invalid, word)
		}
	}
	s.ExpectGranted(t, k)
}

// Of several invalid times, the error always names the same.
func TestInput_NamesTheFirstInvalidTime(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	p, zero := s.Probe(t), durationpb.New(0)
	for range 20 {
		locktest.ExpectRefusal(t, p, &messages.Acquire{Lock: k.Message(), Lease: zero, MaxHold: zero, AtLeast: zero}, invalid, "the lease is zero")
	}
}

func TestInput_RefusesInvalidMessages(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	p := s.Probe(t)
	for words, lock := range map[[2]string]*messages.Lock{
		{"no lock"}: nil, {"99", "KIND_PLAIN"}: {Name: k.LockName, Kind: 99},
		{"KIND_SEMAPHORE is not a lock", "AcquirePermits"}: {Name: k.LockName, Kind: messages.Kind_KIND_SEMAPHORE},
		{"KIND_LATCH is not a lock"}:                       {Name: k.LockName, Kind: messages.Kind_KIND_LATCH},
		{"-1", "MODE_EXCLUSIVE"}:                           {Name: k.LockName, Mode: -1},
	} {
		for _, request := range locktest.Requests(lock) {
			locktest.ExpectRefusal(t, p, request, invalid, words[:]...)
		}
	}
	for _, request := range []proto.Message{
		(*messages.Acquire)(nil), (*messages.Release)(nil), (*messages.Cancel)(nil), (*messages.ForceRelease)(nil), (*messages.Inspect)(nil),
	} {
		locktest.ExpectRefusal(t, p, request, invalid, "no lock")
		s.Actors.Root.Send(s.Guardian(), request) // without a sender
	}
	for _, nonsense := range []any{"text", 7, struct{}{}, &messages.Acquired{}, &actor.Failure{}} {
		if failed := locktest.Ask[*messages.Failed](t, p, nonsense); failed.Reason != invalid || !strings.Contains(failed.Detail, "guardian") {
			t.Errorf("answered %v", failed)
		}
		s.Actors.Root.Send(s.Guardian(), nonsense)
	}
	future := actor.NewFuture(s.Actors, time.Minute)
	locktest.ExpectRefusal(t, p, &messages.Acquire{Lock: k.Message(), Owner: future.PID()}, invalid, "future")
	s.Actors.ProcessRegistry.Remove(future.PID())
	k.IsFree(t)
	s.ExpectGranted(t, k)
	if len(p.Mail) > 0 {
		t.Errorf("answered once more: %v", <-p.Mail)
	}
}
