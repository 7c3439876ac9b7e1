package redisio

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// inSlot are names that share a slot, which belongs to the first of two servers.
func inSlot(t *testing.T, names int) (all []string, slot int) {
	for n := 0; ; n++ {
		tag := fmt.Sprint(redistest.Name(t), n)
		if slot = int(Slot(tag)); slot >= 8192 {
			continue
		}
		for i := range names {
			all = append(all, fmt.Sprintf("{%s}%d", tag, i))
		}
		return all, slot
	}
}

// Redis refuses a batch of renewals whose keys are on two servers: each is renewed by itself.
func TestRenewalsInASplitSlot(t *testing.T) {
	servers := redistest.Cluster(t, 2)
	r := New(connect(t, servers[0].URL()), time.Hour)
	t.Cleanup(r.Close)
	keys, slot := inSlot(t, 5)
	for _, key := range keys[:4] {
		if reply := run(t, r, scripts.Acquire, []string{key}, "a", "1", "59000"); reply.Err != nil {
			t.Fatal(reply.Err)
		}
	}
	servers[0].BeginMove(t, slot, servers[1])
	servers[0].MigrateKeys(t, slot, servers[1], keys[0], keys[2])
	in := newInbox()
	for i, key := range keys {
		n := renewal(key, in, i)
		n.Now = i == len(keys)-1 // sends the batch
		r.Renew(n)
	}
	for i, reply := range in.awaitAll(t, len(keys)) {
		want := int64(1)
		if i == 4 {
			want = 0 // there is no such lock
		}
		if reply.Err != nil || reply.N[0] != want {
			t.Errorf("lock %d: %+v, want %d", i, reply, want)
		}
	}
}
