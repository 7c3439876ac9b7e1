package redisio

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestSubscribeWhileTheServerIsBusy(t *testing.T) {
	s := redistest.Start(t, "--lua-time-limit", "10")
	p := redistest.NewProxy(t, s.Addr())
	e := newEars()
	subs := subscribe(t, connect(t, p.URL()), e)
	subs.Add("a")
	e.awaitSubscribed(t, "a", 1)
	var answered atomic.Int64
	watch(p, func(cmd []string) {
		if cmd[0] == "SUBSCRIBE" {
			answered.Add(1)
		}
	})
	end := keepBusy(t, s)
	subs.Add("b")
	redistest.Eventually(t, "refusals", func() bool { return answered.Load() >= 2 })
	end()
	e.awaitSubscribed(t, "b", 1)
	if n := e.count(e.refusals, "b"); n != 0 {
		t.Error("the listener was told of what passes by itself")
	}
}

func TestRefusedChannels(t *testing.T) {
	s := redistest.Start(t)
	do(t, s, "ACL", "SETUSER", "u", "on", ">p", "+@all", "~*", "resetchannels", "&ok*")
	e := newEars()
	subs := subscribe(t, connect(t, "redis://u:p@"+s.Addr()), e)
	check := func(times int) {
		t.Helper()
		for i := range 10 {
			e.awaitSubscribed(t, fmt.Sprint("ok", i), times)
		}
		e.awaitRefused(t, "bad1", times)
		e.awaitRefused(t, "bad2", times)
		for i := range 10 {
			if n := e.count(e.refusals, fmt.Sprint("ok", i)); n != 0 {
				t.Errorf("ok%d was refused", i)
			}
			heard := e.count(e.heard, fmt.Sprint("ok", i))
			publish(t, s, fmt.Sprint("ok", i))
			e.awaitHeard(t, fmt.Sprint("ok", i), heard+1)
		}
	}
	subs.Add("bad1")
	for i := range 10 {
		subs.Add(fmt.Sprint("ok", i))
	}
	subs.Add("bad2")
	check(1)
	expect(t, "refusal", e.refusal, hinted("+subscribe"))

	s.KillClients(t, "pubsub")
	check(2)

	subs.Add("bad1")
	e.awaitRefused(t, "bad1", 3)
	subs.Remove("bad1")
	subs.Remove("bad2")
	subs.Add("ok0")
	e.awaitSubscribed(t, "ok0", 3)

	do(t, s, "ACL", "SETUSER", "u", "&bad*")
	subs.Add("bad1")
	e.awaitSubscribed(t, "bad1", 1)
	publish(t, s, "bad1")
	e.awaitHeard(t, "bad1", 1)
}
