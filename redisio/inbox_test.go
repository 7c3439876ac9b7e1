package redisio

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// inbox is a Receiver that keeps what it is told.
type inbox struct {
	mu      sync.Mutex
	replies map[uint64][]Reply
	order   []uint64
}

func newInbox() *inbox { return &inbox{replies: map[uint64][]Reply{}} }

func (in *inbox) Replied(seq uint64, r Reply) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.replies[seq] = append(in.replies[seq], r)
	in.order = append(in.order, seq)
}

func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.order)
}

// position tells as the how manieth a call was answered, from 0; -1 if it was not.
func (in *inbox) position(seq uint64) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Index(in.order, seq)
}

// await waits for the one reply to a call.
func (in *inbox) await(t testing.TB, seq uint64) Reply {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("reply ", seq), func() bool { return in.position(seq) >= 0 })
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.replies[seq][0]
}

// awaitAll waits until the calls 0 … n-1 are answered, and expects that each was once.
func (in *inbox) awaitAll(t testing.TB, n int) []Reply {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint(n, " replies"), func() bool { return in.count() >= n })
	in.mu.Lock()
	defer in.mu.Unlock()
	all := make([]Reply, n)
	for i := range all {
		replies := in.replies[uint64(i)]
		if len(replies) != 1 {
			t.Fatalf("call %d was answered %d times", i, len(replies))
		}
		all[i] = replies[0]
	}
	return all
}
