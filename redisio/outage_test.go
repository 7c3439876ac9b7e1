package redisio

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Whatever happens to the server, each call is answered once, and runs at most once.
func TestEveryCallIsAnsweredOnce(t *testing.T) {
	const calls = 6000
	for _, trouble := range []struct {
		name  string
		do    func(t *testing.T, s *redistest.Server, p *redistest.Proxy)
		fails bool // calls may fail
		wipes bool // the server's memory
	}{
		{"killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.Kill(t); s.Restart(t) }, true, true},
		{"paused", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) {
			s.Pause(t)
			time.Sleep(20 * time.Millisecond)
			s.Resume(t)
		}, false, false},
		{"scripts flushed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.ScriptFlush(t) }, false, false},
		{"clients killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.KillClients(t, "normal") }, true, false},
		{"connections cut", func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) { p.Cut() }, true, false},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr())
			r, in := open(t, connect(t, p.URL())), newInbox()
			for i := range calls {
				call := counted(in, "h", i, soon())
				call.Urgent = i%3 == 0
				r.Run(call)
				if i%500 == 499 {
					for in.count() < i-250 { // some are done, others under way
						runtime.Gosched()
					}
					trouble.do(t, s, p)
				}
			}
			replies, failed := in.awaitAll(t, calls), 0
			ran := runs(t, s, "h")
			for i, reply := range replies {
				n := ran[strconv.Itoa(i)]
				switch {
				case reply.Err != nil && (!trouble.fails || !reply.Err.Transient):
					t.Fatalf("call %d: %v", i, reply.Err)
				case reply.Err != nil && !reply.Err.Unsure && n > 0:
					t.Errorf("call %d has run, though it is sure that it did not: %v", i, reply.Err)
				case reply.Err == nil && reply.N[0] != int64(i):
					t.Errorf("call %d got the reply of %d", i, reply.N[0])
				case reply.Err == nil && n == 0 && !trouble.wipes, n > 1:
					t.Errorf("call %d ran %d times", i, n)
				}
				if reply.Err != nil {
					failed++
				}
			}
			t.Logf("%d of %d calls failed", failed, calls)
			// The first call may still meet the broken connection.
			redistest.Eventually(t, "all to be well afterwards", func() bool { return acquire(t, r, "k").Nil })
		})
	}
}

// A script that the server has forgotten is sent with its source, and known again.
func TestForgottenScripts(t *testing.T) {
	s := redistest.Start(t)
	client := &spy{Client: connect(t, s.URL())}
	r, in := open(t, client), newInbox()
	letGo := client.hold("h")
	for i := range 100 {
		r.Run(counted(in, "h", i, soon()))
	}
	letGo() // one after the other and in pipelines
	for i, reply := range in.awaitAll(t, 100) {
		if reply != (Reply{N: [3]int64{int64(i)}}) {
			t.Errorf("call %d: %+v", i, reply)
		}
	}
	for call, n := range runs(t, s, "h") {
		if n != 1 {
			t.Errorf("call %s ran %d times", call, n)
		}
	}
	s.ResetStats(t)
	if reply := run(t, r, count, []string{"h"}, "7"); reply.N[0] != 7 {
		t.Errorf("%+v", reply)
	}
	if calls := s.Calls(t); calls["eval"] != 0 || calls["evalsha"] != 1 {
		t.Errorf("the source was sent %d times though the script is known, its digest %d times", calls["eval"], calls["evalsha"])
	}
}

// A lock's own deadline also bounds the second try, with the source.
func TestForgottenScriptAndSilence(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	r, in := open(t, connect(t, p.URL()+"?write_timeout=1m")), newInbox()
	held := p.Hold(redistest.Command("EVAL"), redistest.Silent)
	start := time.Now()
	r.Run(counted(in, "h", 1, start.Add(200*time.Millisecond)))
	err := in.await(t, 1).Err
	held.Wait(t)
	expect(t, "silence", err, doubtful)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// A connection that died without a word is found out by pings and replaced.
func TestSilentlyDeadConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	client := connect(t, p.URL())
	r := open(t, client)
	warmUp(t, client)
	start := time.Now()
	p.DropRepliesTo(redistest.Script(count.SHA), 1, redistest.Silent)
	in := newInbox()
	r.Run(counted(in, "h", 0, start.Add(100*time.Millisecond)))
	expect(t, "silence", in.await(t, 0).Err, doubtful)
	next := 1
	redistest.Eventually(t, "twenty answers in a row", func() bool {
		for range 20 {
			r.Run(counted(in, "h", next, time.Now().Add(100*time.Millisecond)))
			next++
			if in.await(t, uint64(next-1)).Err != nil {
				return false
			}
		}
		return true
	})
	if took := time.Since(start); took > 4*deadConnection {
		t.Errorf("took %v", took)
	}
}
