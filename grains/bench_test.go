//go:build !race

package grains

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// BenchmarkRequest measures the first request of a grain, which starts it, and a later one, next to proto.actor's own lookup with
// the same members. A third of the grains is in the process that asks. A registration is the round trip to Redis without which
// no grain of a Directory can start. They take turns, so that the load of the machine is the same for all. There are five rounds;
// × is the ratio to disthash's of their medians (of a registration, to its first request), with the least and the most.
//
// The members are processes on this machine, as is Redis; or all in this process, a round trip of 1 ms away from each other and
// from Redis.
//
//	go test -run '^$' -bench Request -benchtime 3000x ./grains
func BenchmarkRequest(b *testing.B) {
	if of := os.Getenv(memberEnv); of != "" {
		runMember(b, of)
		return
	}
	b.Run("near", func(b *testing.B) { benchmarkRequest(b, 0) })
	b.Run("1ms", func(b *testing.B) { benchmarkRequest(b, 500*time.Microsecond) })
}

// memberEnv makes BenchmarkRequest a member: it has the URL, the name of the cluster, and the name of the lookup.
const memberEnv = "LOCKKEEPER_BENCH_MEMBER"

var lookups = map[string]func(*Directory) cluster.IdentityLookup{
	"directory": (*Directory).Lookup,
	"disthash":  func(*Directory) cluster.IdentityLookup { return disthash.New() },
}

// runMember is a member until its standard input ends, which is the end of the benchmark.
func runMember(b *testing.B, of string) {
	var url, name, lookup string
	if _, err := fmt.Sscan(of, &url, &name, &lookup); err != nil {
		b.Fatal(err)
	}
	f := &fleet{t: b, url: url, name: name, lookup: lookups[lookup], alive: map[string]int{}}
	f.member(Config{})
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startMember starts a process that is a member.
func (f *fleet) startMember(lookup string) {
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$", "-test.bench=^BenchmarkRequest$", "-test.benchtime=1x")
	cmd.Env, cmd.Stderr = append(os.Environ(), memberEnv+"="+strings.Join([]string{f.url, f.name, lookup}, " ")), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
}

// benchmarkRequest delays everything by far in each direction. Nearby, the other members are processes of their own.
func benchmarkRequest(b *testing.B, far time.Duration) {
	away := func(address string) string {
		if far == 0 || b.Context().Err() != nil { // proto.actor dials on after the end
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
	start := func(lookup string) *node {
		f := newFleet(b, redistest.Start(b))
		f.url = "redis://" + away(f.redis.Addr())
		f.lookup = lookups[lookup]
		f.remote = []remote.ConfigOption{remote.WithDialOptions(grpc.WithTransportCredentials(insecure.NewCredentials()), dial)}
		n := f.member(Config{})
		for range 2 {
			if far == 0 {
				f.startMember(lookup)
			} else {
				f.member(Config{})
			}
		}
		redistest.Eventually(b, "three members", func() bool { return n.MemberList.Length() == 3 })
		return n
	}
	ours, theirs := start("directory"), start("disthash")
	grain := ""
	request := func(n *node) func() error {
		return func() error { _, err := n.ask(grain, "where"); return err }
	}
	member := ours.d.term.Load().member.ID
	calls := []struct {
		what string
		call func() error
	}{
		{"registration", func() error {
			_, err := ours.d.redis.register("bare/"+grain, member, "", 0)
			return err
		}},
		{"first", request(ours)},
		{"disthash-first", request(theirs)},
		{"later", request(ours)},
		{"disthash-later", request(theirs)},
	}
	const rounds = 5
	medians := make([][]float64, len(calls)) // of each round, in µs
	b.ResetTimer()
	for range rounds {
		took := make([][]time.Duration, len(calls))
		for range max(b.N/rounds, 1) {
			grain = uuid.NewString()
			for _, i := range append(rand.Perm(3), 3, 4) { // no first request always comes after the same
				begin := time.Now()
				if err := calls[i].call(); err != nil {
					b.Fatal(err)
				}
				took[i] = append(took[i], time.Since(begin))
			}
		}
		for i := range calls {
			slices.Sort(took[i])
			medians[i] = append(medians[i], float64(took[i][len(took[i])/2].Nanoseconds())/1000)
		}
	}
	for _, of := range []int{0, 1, 3} {
		by, ratios := medians[2], make([]float64, rounds)
		if of == 3 {
			by = medians[4]
		}
		for i := range ratios {
			ratios[i] = medians[of][i] / by[i]
		}
		slices.Sort(ratios)
		for what, ratio := range map[string]float64{"": ratios[rounds/2], "-least": ratios[0], "-most": ratios[rounds-1]} {
			b.ReportMetric(ratio, "×-"+calls[of].what+what)
		}
	}
	for i, c := range calls {
		slices.Sort(medians[i])
		b.ReportMetric(medians[i][rounds/2], "µs-"+c.what)
	}
}
