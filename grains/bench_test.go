//go:build !race

package grains

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest/rig"
)

// BenchmarkRequest measures the first request of a grain, which starts it, and a later one, beside proto.actor's own lookup with
// the same members. A third of the grains is in the process that asks. A registration is the round trip to Redis without which
// no grain of a Directory can start. They take turns, so that the load of the machine is the same for all. The members and Redis
// are on this machine, or a round trip of 1 ms away from each other.
//
//	go test -run '^$' -bench Request -benchtime 5000x ./grains
func BenchmarkRequest(b *testing.B) {
	b.Run("near", func(b *testing.B) { benchmarkRequest(b, 0) })
	b.Run("1ms", func(b *testing.B) { benchmarkRequest(b, 500*time.Microsecond) })
}

// benchmarkRequest delays everything by far in each direction.
func benchmarkRequest(b *testing.B, far time.Duration) {
	away := func(address string) string {
		if far == 0 {
			return address
		}
		p, err := rig.NewProxy(address, rig.ProxyOptions{Far: far, Bytes: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(p.Close)
		return p.Addr()
	}
	dial := grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", away(address))
	})
	start := func(lookup func(d *Directory) cluster.IdentityLookup) *node {
		f := newFleet(b, redistest.Start(b))
		f.url = "redis://" + away(f.redis.Addr())
		f.lookup = lookup
		f.remote = []remote.ConfigOption{remote.WithDialOptions(grpc.WithTransportCredentials(insecure.NewCredentials()), dial)}
		n := f.member(Config{})
		f.member(Config{})
		f.member(Config{})
		redistest.Eventually(b, "three members", func() bool { return n.MemberList.Length() == 3 })
		return n
	}
	ours := start((*Directory).Lookup)
	theirs := start(func(*Directory) cluster.IdentityLookup { return disthash.New() })
	grain := ""
	request := func(n *node) func() error {
		return func() error { _, err := n.ask(grain, "where"); return err }
	}
	member := ours.d.term.Load().member.ID
	calls := []struct {
		what string
		call func() error
		took []time.Duration
	}{
		{what: "registration", call: func() error {
			_, err := ours.d.redis.register("bare/"+grain, member, "", 0)
			return err
		}},
		{what: "first", call: request(ours)},
		{what: "disthash-first", call: request(theirs)},
		{what: "later", call: request(ours)},
		{what: "disthash-later", call: request(theirs)},
	}
	b.ResetTimer()
	for range b.N {
		grain = uuid.NewString()
		for i := range calls {
			begin := time.Now()
			if err := calls[i].call(); err != nil {
				b.Fatal(err)
			}
			calls[i].took = append(calls[i].took, time.Since(begin))
		}
	}
	for _, c := range calls {
		slices.Sort(c.took)
		b.ReportMetric(float64(c.took[len(c.took)/2].Microseconds()), "µs-"+c.what)
	}
}
