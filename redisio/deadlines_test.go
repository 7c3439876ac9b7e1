package redisio

import (
	"strconv"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestLateCallsAreNotSent(t *testing.T) {
	s := redistest.Shared(t)
	client := &spy{Client: connect(t, s.URL())}
	r, in, hash := open(t, client), newInbox(), redistest.Name(t)
	letGo := client.hold(hash)
	defer letGo()
	for i := range workers {
		r.Run(counted(in, hash, i, soon()))
		redistest.Eventually(t, "a worker to be busy", func() bool { return len(client.sent()) == i+1 })
	}
	const late = 3 * maxBatch
	deadline := time.Now().Add(20 * time.Millisecond)
	for i := range late {
		d := deadline
		if i%2 == 0 {
			d = soon()
		}
		r.Run(counted(in, hash, workers+i, d))
	}
	redistest.Eventually(t, "the deadline", func() bool { return time.Now().After(deadline) })
	letGo()
	replies, ran := in.awaitAll(t, workers+late), runs(t, s, hash)
	for i, reply := range replies {
		isLate := i >= workers && (i-workers)%2 == 1
		if (reply.Err == errNotSent) != isLate || (!isLate && reply.N[0] != int64(i)) {
			t.Errorf("call %d, late %v: %+v", i, isLate, reply)
		}
		if _, sent := ran[strconv.Itoa(i)]; sent == isLate {
			t.Errorf("call %d, late %v: has run %v", i, isLate, sent)
		}
	}
}

func TestDeadlinesWhileRedisIsSilent(t *testing.T) {
	const calls = 10_000
	s := redistest.Start(t)
	r, in := open(t, connect(t, s.URL())), newInbox()
	run(t, r, count, []string{"h"}, "-1")
	s.Pause(t)
	start := time.Now()
	for i := range calls {
		call := counted(in, "h", i, start.Add(300*time.Millisecond))
		call.Urgent = i%5 == 0
		r.Run(call)
	}
	replies := in.awaitAll(t, calls)
	if took := time.Since(start); took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("answered after %v", took)
	}
	notSent := 0
	for i, reply := range replies {
		if reply.Err == nil || !reply.Err.Transient || reply.Err.Unsure == (reply.Err == errNotSent) {
			t.Fatalf("call %d: %+v", i, reply)
		}
		if reply.Err == errNotSent {
			notSent++
		}
	}
	if sent := calls - notSent; sent > 2*(workers+urgentWorkers)*maxBatch {
		t.Errorf("%d calls were sent", sent)
	}
	s.Resume(t)
	run(t, r, count, []string{"h"}, "-2")
	ran := runs(t, s, "h")
	for i, reply := range replies {
		if ran[strconv.Itoa(i)] != 0 && reply.Err == errNotSent {
			t.Errorf("call %d has run", i)
		}
	}
}

func TestDeadlineOfAPipeline(t *testing.T) {
	s := redistest.Start(t)
	client := connect(t, s.URL())
	warmUp(t, client)
	in, p := newInbox(), newPool(client, &reconnector{client: client})
	impatient := time.Now().Add(20 * time.Millisecond)
	s.Pause(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run([]Call{counted(in, "h", 0, soon()), counted(in, "h", 1, impatient), counted(in, "h", 2, impatient)})
	}()
	redistest.Eventually(t, "the deadline", func() bool { return time.Now().After(impatient) })
	s.Resume(t)
	<-done
	if reply := in.awaitAll(t, 3)[0]; reply.Err != nil {
		t.Errorf("cut short by another call: %v", reply.Err)
	}
}
