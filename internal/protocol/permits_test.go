package protocol_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/leased"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// What Redis says to each command on permits, and what Redisson would find afterwards.
func TestPermitsCommands(t *testing.T) {
	r := startReal(t)
	permits := protocol.NewPermits("permits", "client")
	deadline := time.Now().Add(redistest.Limit)
	do := func(call redisio.Call) redisio.Reply {
		call.To = r.replies
		r.redis.Run(call)
		return (<-r.replies).Reply
	}
	id := func(letter string) leased.ID { return leased.ID([]byte(strings.Repeat(letter, 16))) }
	for i, step := range []struct {
		command leased.Command
		want    leased.Result
		after   string
	}{
		{leased.Command{Kind: leased.Set, How: leased.Try, Count: 2}, leased.Result{Done: true}, "{2 0 2}"},
		{leased.Command{Kind: leased.Set, How: leased.Try, Count: 3}, leased.Result{}, "{2 0 2}"},
		{leased.Command{Kind: leased.Acquire, IDs: []leased.ID{id("a"), id("b"), id("c")}, Leases: []time.Duration{time.Hour, time.Minute, time.Hour}}, leased.Result{Served: 2, Wait: -time.Millisecond}, "{0 2 2}"},
		{leased.Command{Kind: leased.Acquire, IDs: []leased.ID{id("d")}, Leases: []time.Duration{time.Hour}}, leased.Result{Wait: 50 * time.Second}, "{0 2 2}"},
		{leased.Command{Kind: leased.Renew, IDs: []leased.ID{id("b"), id("c")}, Lease: time.Hour}, leased.Result{Valid: []bool{true, false}}, "{0 2 2}"},
		{leased.Command{Kind: leased.Set, How: leased.Add, Count: 1}, leased.Result{Done: true}, "{1 2 3}"},
		{leased.Command{Kind: leased.Release, IDs: []leased.ID{id("c"), id("b")}}, leased.Result{Valid: []bool{false, true}, Heard: 1}, "{2 1 3}"},
		{leased.Command{Kind: leased.Set, How: leased.Total, Count: 8}, leased.Result{Done: true}, "{7 1 8}"},
	} {
		step.command.Number = uint64(i + 1)
		for range 2 {
			got := protocol.ReadPermits(&step.command, do(permits.Call(&step.command, deadline)))
			if got.Err != nil || got.Served != step.want.Served || !slices.Equal(got.Valid, step.want.Valid) || got.Heard < step.want.Heard || got.Done != step.want.Done || got.Wait < step.want.Wait {
				t.Errorf("%+v: %+v", step.command, got)
			}
		}
		v, err := protocol.ViewPermits(do(permits.Inspect(deadline)))
		if err != nil {
			t.Error(err)
		}
		if after := fmt.Sprint("{", v.FreePermits, " ", v.TakenPermits, " ", v.AllPermits, "}"); after != step.after {
			t.Errorf("after %+v there are %s, want %s", step.command, after, step.after)
		}
	}
	if left, err := r.Do(t, "ZRANGE", "{permits}:timeout", "0", "-1").AsStrSlice(); err != nil || len(left) != 1 || left[0] != "aaaaaaaaaaaaaaaa" {
		t.Errorf("taken: %q, %v", left, err)
	}
	if got := id("a").String(); got != "61616161616161616161616161616161" {
		t.Error(got)
	}
	command := leased.Command{Kind: leased.Renew, IDs: []leased.ID{id("a")}}
	if got := protocol.ReadPermits(&command, redisio.Reply{}); got.Err == nil || !got.Unsure {
		t.Errorf("a reply about nothing: %+v", got)
	}
}
