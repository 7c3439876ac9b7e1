package redisclient

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A few workers send many calls in few pipelines, and the calls do not delay an urgent call or a renewal.
func TestCalls_AreBatched(t *testing.T) {
	t.Parallel()
	const calls = 2 * workers * maxBatch
	s := redistest.Shared(t)
	client := &spy{Client: redistest.Connect(t, s.URL())}
	r, in, urgent, hash := open(t, client), newInbox(), newInbox(), redistest.Name(t)
	run(t, r, count, []string{hash}, "-1") // now the server knows the script
	before := len(client.sent())
	letGo := client.hold(hash)
	defer letGo()
	for i := range calls {
		r.Run(counted(in, hash, i, redistest.Soon()))
	}
	redistest.Eventually(t, "all workers to be busy", func() bool { return len(client.sent()) == before+workers })
	call := counted(urgent, redistest.Name(t), 0, redistest.Soon())
	call.Urgent = true
	r.Run(call)
	r.Renew(renewal(held(t, s), urgent, 1))
	if reply, renewed := urgent.await(t, 0), urgent.await(t, 1); reply.Err != nil || renewed.N[0] != 1 || in.count() != 0 {
		t.Errorf("the urgent call: %+v, the renewal: %+v, and %d calls have replies", reply, renewed, in.count())
	}
	letGo()
	replies, ran := in.awaitAll(t, calls), runs(t, s, hash)
	for i, reply := range replies {
		if reply != (Reply{N: [3]int64{int64(i)}}) || ran[strconv.Itoa(i)] != 1 {
			t.Fatalf("call %d: %+v, ran %d times", i, reply, ran[strconv.Itoa(i)])
		}
	}
	pipelines := client.sent()[before:]
	if longest := slices.Max(pipelines); longest > maxBatch || len(pipelines) > 2*workers+calls/maxBatch {
		t.Errorf("%d calls were sent in %d pipelines of up to %d", calls, len(pipelines), longest)
	}
}

// A queue that is never empty must not keep the calls that were removed.
func TestQueue_DoesNotGrowWithoutEnd(t *testing.T) {
	t.Parallel()
	p := newPool(nil, &reconnector{}, false)
	l := &p.normal
	l.max = 0 // no workers
	var batch []Call
	for range 5 * maxBatch {
		p.submit(Call{})
	}
	for range 300 {
		for range maxBatch {
			p.submit(Call{})
		}
		batch = p.take(l, batch)
	}
	if n := cap(l.queue); n > 20*maxBatch {
		t.Errorf("room for %d calls, for %d that wait", n, len(l.queue)-l.head)
	}
}

// While Redis does not answer, every call gets a Reply by its deadline, and few goroutines run any
// number of calls.
func TestDeadline_HoldsWhileRedisIsSilent(t *testing.T) {
	t.Parallel()
	const calls = 5000
	s := redistest.Start(t)
	r, in := open(t, redistest.Connect(t, s.URL())), newInbox()
	run(t, r, count, []string{"h"}, "-1")
	s.Pause(t)
	start := time.Now()
	for i := range calls {
		call := counted(in, "h", i, start.Add(300*time.Millisecond))
		call.Urgent = i%5 == 0
		r.Run(call)
	}
	r.pool.mu.Lock()
	if n, urgent := r.pool.normal.running, r.pool.urgent.running; n > workers || urgent > urgentWorkers {
		t.Errorf("%d and %d goroutines for %d calls", n, urgent, calls)
	}
	r.pool.mu.Unlock()
	replies := in.awaitAll(t, calls)
	if d := time.Since(start); d < 300*time.Millisecond {
		t.Errorf("all were answered after %v", d)
	}
	s.Resume(t)
	run(t, r, count, []string{"h"}, "-2")
	ran, sent := runs(t, s, "h"), 0
	for i, reply := range replies {
		switch {
		case reply.Err != nil && reply.Err.Transient && !reply.Err.Unsure && ran[strconv.Itoa(i)] == 0: // not sent
		case reply.Err != nil && reply.Err.Transient && reply.Err.Unsure && reply.Err.Unwrap().Error() == "no reply from Redis in time":
			sent++
		default:
			t.Fatalf("call %d ran %d times: %+v", i, ran[strconv.Itoa(i)], reply)
		}
	}
	if sent > 2*(workers+urgentWorkers)*maxBatch {
		t.Errorf("%d calls were sent", sent)
	}
}

// The deadline of a pipeline is the latest deadline of its calls. A call whose deadline has passed gets a
// Reply and is not sent.
func TestDeadline_OfAPipelineIsTheLatest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := redistest.Connect(t, s.URL())
	run(t, open(t, client), count, []string{"h"}, "-1")
	in, p := newInbox(), newPool(client, &reconnector{client: client}, false)
	impatient := time.Now().Add(20 * time.Millisecond)
	s.Pause(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run([]Call{counted(in, "h", 0, time.Now()), counted(in, "h", 1, redistest.Soon()), counted(in, "h", 2, impatient)})
	}()
	redistest.Eventually(t, "the deadline", func() bool { return time.Now().After(impatient) })
	s.Resume(t)
	<-done
	if replies := in.awaitAll(t, 3); replies[0].Err != errNotSent || replies[1].Err != nil || runs(t, s, "h")["0"] != 0 {
		t.Errorf("the late call: %v, the other one: %v; they ran %v times", replies[0].Err, replies[1].Err, runs(t, s, "h"))
	}
}

// Close returns when every call has a Reply, including the calls of Piggyback. Later calls get a Reply, but are not
// sent.
func TestClose_ReturnsWhenAllIsAnswered(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	r, in, hash := New(redistest.Connect(t, s.URL()), time.Hour), newInbox(), redistest.Name(t)
	const calls = 2000
	for i := range calls {
		r.Run(counted(in, hash, i, redistest.Soon()))
	}
	renewed := newInbox()
	r.Renew(Renewal{Script: scripts.Renew, Key: hash, Owner: "0", Lease: time.Minute, Deadline: redistest.Soon(), To: renewed})
	r.Close()
	if len(in.replies) != calls || len(renewed.replies) != 1 {
		t.Errorf("%d calls and %d renewals were answered before the end", len(in.replies), len(renewed.replies))
	}
	r.Close() // again

	late, unused := newInbox(), redistest.Name(t)
	r.Run(counted(late, unused, 0, redistest.Soon()))
	n := renewal(unused, late, 1)
	n.Immediate = true
	r.Renew(n)
	for i, reply := range late.awaitAll(t, 2) {
		if reply.Err != errClosed {
			t.Errorf("call %d: %+v", i, reply)
		}
	}
	if n, err := s.Do(t, "EXISTS", unused).AsInt64(); err != nil || n != 0 {
		t.Error("it was sent", err)
	}
}

// With any fault of the server, each call gets one Reply, and runs at most once.
func TestCalls_AreAnsweredOnce(t *testing.T) {
	t.Parallel()
	const calls = 3000
	type trouble struct {
		do    func(t *testing.T, s *redistest.Server, p *redistest.Proxy)
		fails bool // calls may fail
	}
	for name, trouble := range map[string]trouble{
		"server killed": {func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.Restart(t) }, true},
		"paused": {func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) {
			s.Pause(t)
			time.Sleep(20 * time.Millisecond) // the length of the pause: calls are sent meanwhile
			s.Resume(t)
		}, false},
		"scripts flushed": {func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.ScriptFlush(t) }, false},
		"clients killed":  {func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.KillClients(t, "normal") }, true},
		"connections cut": {func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) { p.Cut() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr())
			r, in := open(t, redistest.Connect(t, p.URL())), newInbox()
			for i := range calls {
				call := counted(in, "h", i, redistest.Soon())
				call.Urgent = i%3 == 0
				r.Run(call)
				if i%500 == 499 {
					redistest.Eventually(t, "some to be done, and others under way", func() bool { return in.count() >= i-250 })
					trouble.do(t, s, p)
				}
			}
			replies, ran := in.awaitAll(t, calls), runs(t, s, "h")
			for i, reply := range replies {
				n := ran[strconv.Itoa(i)]
				switch {
				case reply.Err != nil && (!trouble.fails || !reply.Err.Transient):
					t.Fatalf("call %d: %v", i, reply.Err)
				case reply.Err != nil && !reply.Err.Unsure && n > 0:
					t.Errorf("call %d has run, though it is sure that it did not: %v", i, reply.Err)
				case reply.Err == nil && reply.N[0] != int64(i):
					t.Errorf("call %d got the reply of %d", i, reply.N[0])
				case reply.Err == nil && n == 0 && name != "server killed", n > 1:
					t.Errorf("call %d ran %d times", i, n)
				}
			}
			// The first call may still meet the broken connection.
			redistest.Eventually(t, "all to be well afterwards", func() bool { return acquire(t, r, "k").Nil })
		})
	}
}

// Pings discover a dead connection, which is replaced. The deadline of a call also bounds its second
// attempt, with the source.
func TestPings_DiscoverADeadConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	r, in := open(t, redistest.Connect(t, p.URL())), newInbox()
	held := p.Hold(redistest.Command("EVAL"), redistest.Silent)
	r.Run(counted(in, "h", 0, time.Now().Add(500*time.Millisecond)))
	err := in.await(t, 0).Err
	if redistest.ExpectError(t, "silence", err, redistest.Doubtful); err.Unwrap().Error() != "no reply from Redis in time" { // and not the connection's error
		t.Error(err)
	}
	held.Wait(t)
	next := 1
	redistest.Eventually(t, "twenty answers in a row", func() bool {
		for range 20 {
			r.Run(counted(in, "h", next, time.Now().Add(time.Second)))
			next++
			if in.await(t, uint64(next-1)).Err != nil {
				return false
			}
		}
		return true
	})
}
