//go:build !race

package grains

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// When Redis does not answer, the grains stop before the lease ends, and handle nothing more. They are there again when Redis
// is back, with a new member.
func TestMember_SurvivesAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{Locks: lockkeeper.Config{Watchdog: 5 * time.Second}, Drain: 1800 * time.Millisecond})
	_, token := a.mustAsk(t, "a", "where")
	pid, before := a.Get("a", "account"), a.d.term.Load()
	if late := (&term{hold: before.hold, drain: time.Hour, ctx: before.ctx}); !before.serves() || late.serves() {
		t.Error("it does not serve, or serves during the drain")
	}
	root := a.ActorSystem.Root
	blocked := root.RequestFuture(pid, wrapperspb.String("block"), time.Minute)
	f.redis.Pause(t)
	if _, err := blocked.Result(); err != nil { // it waits for the end of the term's context
		t.Error(err)
	}
	if !before.hold.Valid() {
		t.Error("the term has ended with the lease, not before")
	}
	redistest.Eventually(t, "the stop of the grain", func() bool { return f.count("a", "stops") == 1 })
	if _, err := root.RequestFuture(pid, wrapperspb.String("where"), time.Minute).Result(); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("a message after the end: %v", err)
	}
	f.redis.Resume(t)
	redistest.Eventually(t, "a new term", func() bool { now := a.d.term.Load(); return now != nil && now != before })
	if now := a.d.term.Load(); now.member.ID == before.member.ID {
		t.Error("a member has come back with its old id")
	}
	if _, higher := a.mustAsk(t, "a", "where"); higher <= token {
		t.Errorf("the token %d is followed by %d", token, higher)
	}
	f.expect()
}

// A member that leaves while Redis does not answer ends its grains before its lease, like a member that stays.
func TestMember_LeavesDuringAnOutageOfRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{Locks: lockkeeper.Config{Watchdog: 5 * time.Second}, Drain: 1800 * time.Millisecond})
	pid, hold := a.Get("a", "account"), a.d.term.Load().hold
	blocked := a.ActorSystem.Root.RequestFuture(pid, wrapperspb.String("block"), time.Minute)
	redistest.Eventually(t, "the message", func() bool { return f.count("a", "handles block") == 1 })
	f.redis.Pause(t)
	left := make(chan error, 1)
	go func() { left <- a.d.Leave(t.Context()) }()
	if _, err := blocked.Result(); err != nil {
		t.Error(err)
	}
	if left := hold.Left(); left <= 0 || left > 1800*time.Millisecond {
		t.Errorf("the grain ends %v before the lease", left)
	}
	f.redis.Resume(t)
	locktest.Check(t, <-left)
	f.expect()
}

// What a member has left without a word is removed when its lease has ended, and its grains run elsewhere at once.
func TestMember_IsBuried(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{})
	for i := range 1200 {
		f.redis.Do(t, "HSET", f.key("entries"), fmt.Sprint("account/", i), "dead#1")
	}
	f.redis.Do(t, "HSET", f.key("entries"), "account/kept", a.d.term.Load().member.ID+"#1")
	locktest.OK(t, a.d.redis.join(t.Context(), Member{ID: "dead", Address: "127.0.0.1:1", Kinds: []string{"account"}}))
	redistest.Eventually(t, "the end of its entries", func() bool { return f.entries() == 1 })
	redistest.Eventually(t, "the end of its record", func() bool {
		n, _ := f.redis.Do(t, "HLEN", f.key("members")).AsInt64()
		return n == 1
	})
	a.mustAsk(t, "7", "where")
}

// A grain whose entry is lost in Redis stops with the next look, and so does all when the lease is deleted.
func TestMember_NoticesLostData(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{Locks: lockkeeper.Config{Watchdog: time.Second}})
	_, token := a.mustAsk(t, "a", "where")
	f.redis.Do(t, "HSET", f.key("entries"), "account/a", "other#1")
	redistest.Eventually(t, "the stop of the grain", func() bool { return f.count("a", "stops") == 1 })
	_, higher := a.mustAsk(t, "a", "where")
	f.redis.Do(t, "FLUSHALL")
	redistest.Eventually(t, "the second stop of the grain", func() bool { return f.count("a", "stops") == 2 })
	_, highest := a.mustAsk(t, "a", "where")
	if higher <= token || highest <= higher {
		t.Errorf("the tokens are %d, %d and %d", token, higher, highest)
	}
	f.expect()
}
