package protocol_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Each command on permits has the wanted result, and leaves the keys that Redisson expects.
func TestPermits_CommandsReply(t *testing.T) {
	r := startReal(t)
	permits := protocol.NewExpirableSemaphore("permits", "client")
	deadline := time.Now().Add(redistest.Limit)
	do := func(call redisclient.Call) redisclient.Reply {
		call.To = r.replies
		r.redis.Run(call)
		return (<-r.replies).Reply
	}
	id := func(letter string) machine.PermitID { return machine.PermitID([]byte(strings.Repeat(letter, 16))) }
	for i, step := range []struct {
		command expirable.Command
		want    expirable.Result
		after   string
	}{
		{expirable.Command{Kind: expirable.Set, Mode: expirable.SetIfUnset, Count: 2}, expirable.Result{Done: true}, "{2 0 2}"},
		{expirable.Command{Kind: expirable.Set, Mode: expirable.SetIfUnset, Count: 3}, expirable.Result{}, "{2 0 2}"},
		{expirable.Command{Kind: expirable.Acquire, IDs: []machine.PermitID{id("a"), id("b"), id("c")}, Counts: []int{1, 1, 1}, Leases: []time.Duration{time.Hour, time.Minute, time.Hour}}, expirable.Result{Served: 2, Wait: -time.Millisecond}, "{0 2 2}"},
		{expirable.Command{Kind: expirable.Acquire, IDs: []machine.PermitID{id("d")}, Counts: []int{1}, Leases: []time.Duration{time.Hour}}, expirable.Result{Wait: 50 * time.Second}, "{0 2 2}"},
		{expirable.Command{Kind: expirable.Renew, IDs: []machine.PermitID{id("b"), id("c")}, Lease: time.Hour}, expirable.Result{Valid: []bool{true, false}}, "{0 2 2}"},
		{expirable.Command{Kind: expirable.Set, Mode: expirable.SetAdd, Count: 1}, expirable.Result{Done: true}, "{1 2 3}"},
		{expirable.Command{Kind: expirable.Release, IDs: []machine.PermitID{id("c"), id("b")}, Counts: []int{1, 1}}, expirable.Result{Valid: []bool{false, true}, Receivers: 1}, "{2 1 3}"},
		{expirable.Command{Kind: expirable.Set, Mode: expirable.SetTotal, Count: 8}, expirable.Result{Done: true}, "{7 1 8}"},
	} {
		step.command.Number = uint64(i + 1)
		for range 2 {
			got := protocol.ReadExpirable(&step.command, do(permits.Call(&step.command, deadline)))
			if got.Err != nil || got.Served != step.want.Served || !slices.Equal(got.Valid, step.want.Valid) ||
				got.Receivers < step.want.Receivers || got.Done != step.want.Done || got.Wait < step.want.Wait {
				t.Errorf("%+v: %+v", step.command, got)
			}
		}
		v, err := protocol.ViewExpirable(do(permits.Inspect(deadline)))
		if err != nil {
			t.Error(err)
		}
		if after := fmt.Sprint("{", v.FreePermits, " ", v.TakenPermits, " ", v.AllPermits, "}"); after != step.after {
			t.Errorf("after %+v there are %s, want %s", step.command, after, step.after)
		}
	}
	if left, err := r.Do(t, "ZRANGE", "{permits}:timeout", "0", "-1").AsStrSlice(); err != nil ||
		len(left) != 1 || left[0] != "aaaaaaaaaaaaaaaa" {
		t.Errorf("taken: %q, %v", left, err)
	}
	if got := id("a").String(); got != "61616161616161616161616161616161" {
		t.Error(got)
	}
	command := expirable.Command{Kind: expirable.Renew, IDs: []machine.PermitID{id("a")}}
	if got := protocol.ReadExpirable(&command, redisclient.Reply{}); got.Err == nil || !got.Unsure {
		t.Errorf("an empty reply: %+v", got)
	}
}
