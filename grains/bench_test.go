//go:build !race

package grains

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// BenchmarkRequest measures the first request of a grain, which starts it, and later ones, beside proto.actor's own lookup with
// the same members. A third of the grains is in the process that asks.
//
//	go test -run '^$' -bench Request -benchtime 3000x ./grains
func BenchmarkRequest(b *testing.B) {
	for name, lookup := range map[string]func(d *Directory) cluster.IdentityLookup{
		"directory": (*Directory).Lookup,
		"disthash":  func(*Directory) cluster.IdentityLookup { return disthash.New() },
	} {
		f := newFleet(b, redistest.Start(b))
		f.lookup = lookup
		n := f.member(Config{})
		f.member(Config{})
		f.member(Config{})
		redistest.Eventually(b, "three members", func() bool { return n.MemberList.Length() == 3 })
		for _, first := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/first=%v", name, first), func(b *testing.B) {
				var took []time.Duration
				for i := range b.N {
					grain := fmt.Sprint("g", i)
					if !first {
						grain = fmt.Sprint("c", i%10)
					}
					begin := time.Now()
					if _, err := n.ask(grain, "where"); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(begin))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
			})
		}
	}
}
