package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
)

// Each command on a latch has the wanted reply. When the latch opens, only the record of the last command is left
// in Redis, and expires.
func TestLatch_CommandsReply(t *testing.T) {
	r := startReal(t)
	latch := protocol.NewLatch("latch", "client")
	deadline := time.Now().Add(redistest.Limit)
	for i, step := range []struct {
		command semaphore.Command
		want    [2]int64
	}{
		{semaphore.Command{Kind: semaphore.Take}, [2]int64{0}},
		{semaphore.Command{Kind: semaphore.Set, N: 4}, [2]int64{1, 4}},
		{semaphore.Command{Kind: semaphore.Set, N: 9}, [2]int64{0, 4}},
		{semaphore.Command{Kind: semaphore.Give, N: 1}, [2]int64{3}},
		{semaphore.Command{Kind: semaphore.Give, IDs: []string{"a b", "c", "a b"}}, [2]int64{1}},
		{semaphore.Command{Kind: semaphore.Give, IDs: []string{"c"}}, [2]int64{1}},
		{semaphore.Command{Kind: semaphore.Inspect}, [2]int64{1}},
		{semaphore.Command{Kind: semaphore.Give, N: 1, IDs: []string{"d"}}, [2]int64{0}},
		{semaphore.Command{Kind: semaphore.Give, N: 1}, [2]int64{0}},
	} {
		step.command.Number = uint64(i + 1)
		for range 2 {
			call := latch.Call(&step.command, deadline)
			call.To = r.replies
			r.redis.Run(call)
			reply := (<-r.replies).Reply
			if reply.Err != nil || reply.N[0] != step.want[0] || reply.N[1] != step.want[1] {
				t.Errorf("%+v: %+v", step.command, reply)
			}
		}
	}
	if left, err := r.Do(t, "KEYS", "*latch*").AsStrSlice(); err != nil || !slices.Equal(left, []string{"lockkeeper_calls:{latch}:client"}) {
		t.Errorf("left are %q, %v", left, err)
	}
}
