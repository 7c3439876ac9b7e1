package redisclient

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// held creates a lock that owner "a" holds for a second less than a minute.
func held(t *testing.T, s *redistest.Server) (key string) {
	t.Helper()
	key = redistest.Name(t)
	s.MustDo(t, "HSET", key, "a", "1")
	s.MustDo(t, "PEXPIRE", key, "59000")
	return key
}

func renewal(key string, in *inbox, seq int) Renewal {
	return Renewal{Script: scripts.Renew, Key: key, Owner: "a", Lease: time.Minute, Deadline: redistest.Soon(), To: in, Seq: uint64(seq)}
}

// Many renewals need few scripts; each lock gets its own lease, and each call its own reply.
func TestRenewals_NeedFewScripts(t *testing.T) {
	t.Parallel()
	const locks = 3*renewalBatch + 50
	s := redistest.Start(t)
	r, in := New(redistest.Connect(t, s.URL()), time.Hour), newInbox()
	keys, want := make([]string, locks), make([]int64, locks)
	for i := range locks {
		keys[i], want[i] = held(t, s), 1
		switch i % 100 {
		case 7:
			s.MustDo(t, "DEL", keys[i])
			want[i] = 0
		case 8:
			s.MustDo(t, "SET", keys[i], "another type")
			want[i] = -1
		case 9:
			s.MustDo(t, "HDEL", keys[i], "a")
			s.MustDo(t, "HSET", keys[i], "b", "1")
			want[i] = -1
		}
	}
	s.ResetStats(t)
	lease := func(i int) time.Duration { return time.Duration(i%10+2)*time.Minute + 500*time.Microsecond }
	for i, key := range keys {
		n := renewal(key, in, i)
		n.Lease = lease(i)
		r.Renew(n)
	}
	r.Close() // sends the rest
	if calls := s.Calls(t); calls["evalsha"]+calls["eval"] != 4 {
		t.Errorf("%d scripts for %d renewals", calls["evalsha"]+calls["eval"], locks)
	}
	for i, reply := range in.awaitAll(t, locks) {
		if reply != (Reply{N: [3]int64{want[i]}}) {
			t.Errorf("lock %d: %+v, want %d", i, reply, want[i])
		}
		ms, err := s.Do(t, "PTTL", keys[i]).AsInt64()
		if left := time.Duration(ms) * time.Millisecond; want[i] == 1 && (err != nil || left > lease(i) || left < lease(i)-30*time.Second) {
			t.Errorf("lock %d: of a lease of %v are left %v, %v", i, lease(i), left, err)
		}
	}
}

func TestRenewals_WaitForOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, test := range []struct {
		name  string
		delay time.Duration
		renew int
		now   bool // the last one
	}{
		{"but not for ever", 5 * time.Millisecond, 1, false},
		{"as long as they are not full", time.Hour, renewalBatch, false},
		{"unless one is in a hurry", time.Hour, 3, true},
		{"unless they need not", 0, 1, false},
	} {
		r := New(redistest.Connect(t, s.URL()), test.delay)
		for range 3 { // the timer works again and again
			var batch []Renewal
			in := newInbox()
			for i := range test.renew {
				batch = append(batch, renewal(held(t, s), in, i))
			}
			batch[len(batch)-1].Immediate = test.now
			s.ResetStats(t)
			for _, n := range batch {
				r.Renew(n)
			}
			for i, reply := range in.awaitAll(t, test.renew) {
				if reply.N[0] != 1 {
					t.Errorf("%s: renewal %d: %+v", test.name, i, reply)
				}
			}
			if calls := s.Calls(t); calls["evalsha"]+calls["eval"] != 1 {
				t.Errorf("%s: %v, want one script for all", test.name, calls)
			}
		}
		r.Close()
	}
}

// Immediate renewals share a script if they become due in one round.
func TestRenewals_OfARoundShareAScript(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r, in := New(redistest.Connect(t, s.URL()), time.Hour), newInbox()
	t.Cleanup(r.Close)
	var hurried []Renewal
	for i := range 5 {
		n := renewal(held(t, s), in, i)
		n.Immediate = i == 1 || i == 3
		hurried = append(hurried, n)
	}
	calls := func() int64 { return s.Calls(t)["evalsha"] + s.Calls(t)["eval"] }
	s.ResetStats(t)
	r.InRound(func() {
		for _, n := range hurried {
			r.Renew(n)
		}
	})
	in.awaitAll(t, 5)
	if n := calls(); n != 1 {
		t.Errorf("%d scripts for a round", n)
	}
	later := newInbox()
	hurried[0].To, hurried[1].To = later, later
	r.Renew(hurried[0])
	r.InRound(func() {})
	r.Renew(hurried[1])
	later.awaitAll(t, 2)
	if n := calls(); n != 2 {
		t.Errorf("%d scripts for a round and two renewals", n)
	}
	overlapping := newInbox()
	hurried[0].To, hurried[0].Immediate = overlapping, true
	r.InRound(func() {
		r.InRound(func() { r.Renew(hurried[0]) })
		overlapping.awaitAll(t, 1) // rounds may overlap for long: it does not wait for all of them
	})
}

// Each receiver gets a reply that holds for the whole script. The deadline of the script is the latest
// deadline of its renewals.
func TestRenewals_ShareAnError(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		s := redistest.Start(t)
		r, in, key := New(redistest.Connect(t, s.URL()), time.Hour), newInbox(), held(t, s)
		s.MustDo(t, "REPLICAOF", "127.0.0.1", "1")
		for i := range 50 {
			n := renewal(key, in, i)
			if i != 25 || late {
				n.Deadline = time.Now().Add(-time.Millisecond)
			}
			r.Renew(n)
		}
		r.Close()
		for _, reply := range in.awaitAll(t, 50) {
			if reply.Err == nil || !reply.Err.Transient || (reply.Err == errNotSent) != late {
				t.Fatalf("late %v: %+v", late, reply)
			}
		}
	}
}

// In a cluster the wait for a late reply ends earlier, since the replies of other servers wait as well.
func TestLate_EndsEarlierInACluster(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	one, cluster := open(t, redistest.Connect(t, redistest.Shared(t).URL())), open(t, redistest.Connect(t, redistest.Cluster(t, 2)[0].URL()))
	for _, test := range []struct{ should, latest, one, cluster int }{{1, 5, 5, 3}, {1, 1, 1, 1}, {2, 1, 2, 2}} {
		if got := one.RenewalDeadline(at(test.should), at(test.latest)); !got.Equal(at(test.one)) {
			t.Errorf("%+v: after %v", test, got.Sub(now))
		}
		if got := cluster.RenewalDeadline(at(test.should), at(test.latest)); !got.Equal(at(test.cluster)) {
			t.Errorf("%+v, in a cluster: after %v", test, got.Sub(now))
		}
	}
}

// In a cluster the keys of a script must be in one slot, and on one server: while the slot
// is being moved, each lease is renewed separately.
func TestRenewals_InAClusterAreSplitBySlot(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	if !open(t, redistest.Connect(t, servers[0].URL())).Cluster() || open(t, redistest.Connect(t, redistest.Shared(t).URL())).Cluster() {
		t.Error("a cluster is not detected, or a single server is taken for one")
	}
	// renew renews the leases of locks, and returns the first numbers of the replies.
	renew := func(keys []string) (renewed []int64) {
		t.Helper()
		r, in := New(redistest.Connect(t, servers[0].URL()), time.Hour), newInbox()
		defer r.Close()
		for i, key := range keys {
			n := renewal(key, in, i)
			n.Immediate = i == len(keys)-1
			r.Renew(n)
		}
		for i, reply := range in.awaitAll(t, len(keys)) {
			if reply.Err != nil {
				t.Errorf("%s was not renewed: %v", keys[i], reply.Err)
			}
			renewed = append(renewed, reply.N[0])
		}
		return renewed
	}
	calls := func(command string) int64 { return servers[0].Calls(t)[command] + servers[1].Calls(t)[command] }
	keys := []string{"n", "a{b}c", "a{b", "a}b", "{}x", "a{}{b}", "}{", "{{a}}"} // 8 slots
	for i := range 200 {
		keys = append(keys, fmt.Sprintf("{%d}%d", i/10, i%10))
	}
	r := open(t, redistest.Connect(t, servers[0].URL()))
	for _, key := range keys {
		if reply := run(t, r, scripts.Acquire, []string{key}, "a", "1", "59000", keyspace.WaitQueue(key), "", "", "", "0"); reply.Err != nil {
			t.Fatal(reply.Err)
		}
	}
	scriptsBefore, expiresBefore := calls("evalsha"), calls("pexpire")
	if renewed := renew(keys); slices.Min(renewed) != 1 {
		t.Errorf("renewed: %v", renewed)
	}
	if ran, n := calls("evalsha")-scriptsBefore, calls("pexpire")-expiresBefore; ran < 28 || ran > 40 || n != int64(len(keys)) {
		t.Errorf("%d scripts for keys in 28 slots, which renewed %d", ran, n)
	}

	// A reply may be late.
	lates, in := open(t, redistest.Connect(t, servers[0].URL())), newInbox()
	servers[0].MustDo(t, "CLIENT", "PAUSE", "1000", "WRITE")
	for i, key := range keys {
		n := renewal(key, in, i)
		n.Immediate, n.Deadline = i == len(keys)-1, lates.RenewalDeadline(time.Now().Add(100*time.Millisecond), time.Now().Add(20*time.Second))
		lates.Renew(n)
	}
	for i, reply := range in.awaitAll(t, len(keys)) {
		if reply.Err != nil || reply.N[0] != 1 {
			t.Errorf("%s, whose server was late: %+v", keys[i], reply)
		}
	}

	slot := int(keyspace.Slot("{0}"))
	from, to := servers[slot/8192], servers[1-slot/8192]
	from.BeginMove(t, slot, to)
	from.MigrateKeys(t, slot, to, "{0}0", "{0}2")
	if renewed := renew([]string{"{0}0", "{0}1", "{0}2", "{0}3", "{0}none"}); !slices.Equal(renewed, []int64{1, 1, 1, 1, 0}) {
		t.Errorf("renewed while the slot is moved: %v", renewed)
	}
}
