package redisclient

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A call of Piggyback is sent in one pipeline with the next call, before it, for all ways to run that.
func TestPiggyback_SharesAPipeline(t *testing.T) {
	t.Parallel()
	order := lua("return redis.call('INCR', KEYS[1])", number)
	for name, next := range map[string]func(r *Redis, c Call){
		"a worker":   func(r *Redis, c Call) { r.Run(c) },
		"its caller": func(r *Redis, c Call) { r.RunHere(context.Background(), &c) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &spy{Client: redistest.Connect(t, redistest.Shared(t).URL())}
			r, in, key := open(t, client), newInbox(), redistest.Name(t)
			run(t, r, order, []string{key})
			c, seq := Call{Script: order, Keys: []string{key}, Deadline: redistest.Soon(), To: in}, uint64(0)
			redistest.Eventually(t, "two in one pipeline", func() bool {
				before := len(client.sent())
				c.Seq = seq
				r.Piggyback(c)
				c.Seq++
				next(r, c)
				first, second := in.await(t, seq), in.await(t, seq+1)
				seq += 2
				sent := client.sent()[before:]
				if first.Err != nil || second.Err != nil {
					t.Errorf("pipelines of %v calls: %+v, then %+v", sent, first, second)
				}
				// On a loaded machine it may be sent alone, after 10 ms, or after the other call.
				return len(sent) == 1 && sent[0] == 2 && second.N[0] == first.N[0]+1
			})
		})
	}
}

// Without another call it is sent alone.
func TestPiggyback_SendsAloneWithoutAnotherCall(t *testing.T) {
	t.Parallel()
	r, in, hash := open(t, redistest.Connect(t, redistest.Shared(t).URL())), newInbox(), redistest.Name(t)
	r.Piggyback(counted(in, hash, 0, redistest.Soon()))
	in.await(t, 0)
	r.Piggyback(counted(in, hash, 1, redistest.Soon()))
	r.Piggyback(counted(in, hash, 2, redistest.Soon())) // sent at once: only one call waits
	for i, reply := range in.awaitAll(t, 3) {
		if reply != (Reply{N: [3]int64{int64(i)}}) {
			t.Errorf("call %d: %+v", i, reply)
		}
	}
}

// AwaitReplies and Close send the waiting call; after Close a call gets an error and is not sent.
func TestClose_SendsTheWaitingCall(t *testing.T) {
	t.Parallel()
	r, in, hash := New(redistest.Connect(t, redistest.Shared(t).URL()), time.Hour), newInbox(), redistest.Name(t)
	run(t, r, count, []string{hash}, "-1")
	for i, end := range []func(){func() { r.AwaitReplies(nil) }, r.Close} {
		r.Piggyback(counted(in, hash, i, redistest.Soon()))
		end()
		if replies := in.to(uint64(i)); len(replies) != 1 || replies[0].Err != nil {
			t.Errorf("call %d: %+v", i, replies)
		}
	}
	r.Piggyback(counted(in, hash, 2, redistest.Soon()))
	if reply := in.await(t, 2); reply.Err != errClosed {
		t.Errorf("after the end: %+v", reply)
	}
}

// patient is a client that records the deadline of a pipeline.
type patient struct {
	rueidis.Client
	until time.Time
}

func (p *patient) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	p.until, _ = ctx.Deadline()
	return p.Client.DoMulti(ctx, commands...)
}

// A call on the caller's goroutine keeps its deadline when a waiting call is sent with it.
func TestPiggyback_DoesNotDelayTheOtherCall(t *testing.T) {
	t.Parallel()
	client := &patient{Client: redistest.Connect(t, redistest.Shared(t).URL())}
	r, in, hash := open(t, client), newInbox(), redistest.Name(t)
	c := counted(in, hash, 1, redistest.Soon())
	redistest.Eventually(t, "a pipeline", func() bool {
		r.Piggyback(counted(in, hash, 0, c.Deadline.Add(time.Minute)))
		r.RunHere(context.Background(), &c)
		return !client.until.IsZero()
	})
	if client.until != c.Deadline {
		t.Errorf("it waits until %v, and its deadline is %v", client.until, c.Deadline)
	}
}

// In a cluster the next call may be for another server.
func TestPiggyback_SendsAloneInACluster(t *testing.T) {
	t.Parallel()
	p := newPool(nil, &reconnector{}, false)
	p.cluster, p.normal.max = true, 0 // no workers
	r := &Redis{pool: p}
	r.Piggyback(Call{})
	if p.waiting.Load() != nil || len(p.normal.queue) != 1 {
		t.Error("the call waits for another call")
	}
}
