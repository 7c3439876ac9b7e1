package backend

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Whatever comes back for the parts of a MultiLock or RedLock, the whole is told once, as
// one of the outcomes, and nobody asks for a part that there is not.
func FuzzParts(f *testing.F) {
	for _, s := range []string{"", "0", "1", "3", "4", "-1", "x", "9223372036854775808", "-9223372036854775808"} {
		f.Add(int64(0), int64(2000), int64(1), "somebody:1", s, uint32(0x3210))
		f.Add(int64(1), int64(0), int64(0), "5,x,7,8,9,10", s, uint32(0))
	}
	f.Add(int64(-3), int64(-1), int64(0), "", "", uint32(0x33333333))
	f.Add(int64(0), int64(-1<<63), int64(0), "", "", uint32(0x01010101))
	f.Fuzz(func(t *testing.T, a, b, c int64, s, u string, outcomes uint32) {
		server := standalone()
		batch := newAll([]Part{{Server: server, Name: "a"}, {Server: server, Name: "b", Fenced: true}, {Server: server, Name: "c", Fenced: true}},
			&protocol.Options{Client: "client"}).(*batch)
		told := 0
		check := func(r Reply) {
			if told++; r.Outcome < lock.Done || r.Outcome > lock.Failed || (r.Outcome == lock.Failed) != (r.Err != nil) {
				t.Errorf("told %+v", r.Result)
			}
			for _, busy := range r.Busy {
				if !strings.HasPrefix(busy.Name, "redisson_lock__channel:{") {
					t.Errorf("busy is %q", busy.Name)
				}
			}
		}
		command := lock.Command{Kind: lock.Acquire, Count: 1, Term: 1, Lease: time.Second}
		reply := redisio.Reply{N: [3]int64{a, b, c}, S: [2]string{s, u}}
		batch.read(check)(batch.call(&command, time.Time{}).Seq, reply)
		first := batch.members[0]
		first.read(check)(first.lock.Vote(&command, 0, protocol.Memory{}, "", time.Time{}).Seq, reply)
		if told != 2 {
			t.Errorf("told %d times", told)
		}

		// Each part's reply is two bits: done, refused, absent, failed.
		for n := 1; n <= 5; n++ {
			m, votes, parts := servers(n), []vote(nil), []Reply(nil)
			for i := range n {
				r := Reply{Result: lock.Result{Outcome: lock.Done}}
				switch bits := outcomes >> (4 * i); bits & 3 {
				case 1:
					r.Outcome, r.Holder, r.TTL = lock.Refused, []string{s, u}[bits>>2&1], time.Duration(a>>i)
				case 2:
					r.Outcome, r.Taken = lock.Absent, bits&4 != 0
				case 3:
					r.Result = lock.Result{Outcome: lock.Failed, Transient: bits&4 != 0, Unsure: bits&8 != 0, Err: errDown}
				}
				votes, parts = append(votes, vote{r, m.members[i]}), append(parts, r)
			}
			if tally := count(votes); len(tally.done) < m.quorum() {
				if r := m.refusal(tally); r.Outcome != lock.Refused && (r.Outcome != lock.Failed || r.Err == nil) {
					t.Errorf("the votes %+v were read as %+v", parts, r.Result)
				}
			}
			for _, kind := range []lock.CommandKind{lock.Release, lock.Renew, lock.ForceRelease} {
				if r := sum(lock.Command{Kind: kind}, slices.Clone(parts)); r.Outcome != lock.Done && r.Outcome != lock.Absent && (r.Outcome != lock.Failed || r.Err == nil) {
					t.Errorf("%v of %+v was read as %+v", kind, parts, r.Result)
				}
			}
		}
	})
}
