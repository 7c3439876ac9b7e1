package redisio

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// held makes a lock that owner "a" holds for a second less than a minute.
func held(t *testing.T, s *redistest.Server) (key string) {
	t.Helper()
	key = redistest.Name(t)
	do(t, s, "HSET", key, "a", "1")
	do(t, s, "PEXPIRE", key, "59000")
	return key
}

func renewal(key string, in *inbox, seq int) Renewal {
	return Renewal{Script: scripts.Renew, Key: key, Owner: "a", Lease: time.Minute, Deadline: soon(), To: in, Seq: uint64(seq)}
}

func pttl(t *testing.T, s *redistest.Server, key string) time.Duration {
	t.Helper()
	ms, err := s.Do(t, "PTTL", key).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// A thousand renewals cost Redis ten scripts, and each receiver gets its own reply.
func TestManyRenewalsFewScripts(t *testing.T) {
	const locks = 1050
	s := redistest.Start(t)
	do(t, s, "SCRIPT", "LOAD", scripts.Renew.Source)
	r := New(connect(t, s.URL()), time.Hour)
	keys, inboxes := make([]string, locks), make([]*inbox, locks)
	want := make([]int64, locks)
	for i := range locks {
		keys[i], inboxes[i], want[i] = held(t, s), newInbox(), 1
		switch i % 100 {
		case 7:
			do(t, s, "DEL", keys[i])
			want[i] = 0
		case 8:
			do(t, s, "DEL", keys[i])
			do(t, s, "SET", keys[i], "another type")
			want[i] = -1
		case 9:
			do(t, s, "HDEL", keys[i], "a")
			do(t, s, "HSET", keys[i], "b", "1")
			want[i] = -1
		}
	}
	s.ResetStats(t)
	for i := range locks {
		r.Renew(renewal(keys[i], inboxes[i], i))
	}
	r.Close() // sends the rest
	calls := s.Calls(t)
	if n := calls["evalsha"] + calls["eval"]; n != 11 {
		t.Errorf("%d scripts for %d renewals", n, locks)
	}
	for i, in := range inboxes {
		reply := in.await(t, uint64(i))
		if reply != (Reply{N: [3]int64{want[i]}}) || in.count() != 1 {
			t.Errorf("lock %d: %+v, want %d; replies: %d", i, reply, want[i], in.count())
		}
		if left := pttl(t, s, keys[i]); want[i] == 1 && left <= 59*time.Second {
			t.Errorf("lock %d was renewed to %v", i, left)
		}
	}
}

func TestRenewalsWaitForCompany(t *testing.T) {
	s := redistest.Start(t)
	do(t, s, "SCRIPT", "LOAD", scripts.Renew.Source)
	client := connect(t, s.URL())

	t.Run("but not for ever", func(t *testing.T) {
		r, in := New(client, 5*time.Millisecond), newInbox()
		defer r.Close()
		for i := range 3 { // the timer works again and again
			r.Renew(renewal(held(t, s), in, 2*i))
			r.Renew(renewal(held(t, s), in, 2*i+1))
			if reply := in.await(t, uint64(2*i)); reply.N[0] != 1 {
				t.Errorf("%+v", reply)
			}
		}
		in.awaitAll(t, 6)
	})
	t.Run("as long as they are not full", func(t *testing.T) {
		r, in := New(client, time.Hour), newInbox()
		defer r.Close()
		for i := range renewalBatch {
			if in.count() > 0 {
				t.Fatalf("sent after %d", i)
			}
			r.Renew(renewal(held(t, s), in, i))
		}
		in.awaitAll(t, renewalBatch)
	})
	t.Run("unless one is in a hurry", func(t *testing.T) {
		r, in := New(client, time.Hour), newInbox()
		defer r.Close()
		r.Renew(renewal(held(t, s), in, 0))
		r.Renew(renewal(held(t, s), in, 1))
		s.ResetStats(t)
		hurried := renewal(held(t, s), in, 2)
		hurried.Now = true
		r.Renew(hurried)
		in.awaitAll(t, 3)
		if calls := s.Calls(t); calls["evalsha"] != 1 {
			t.Errorf("%d scripts, want one that takes the others along", calls["evalsha"])
		}
	})
	t.Run("unless they need not", func(t *testing.T) {
		r, in := New(client, 0), newInbox()
		defer r.Close()
		r.Renew(renewal(held(t, s), in, 0))
		in.awaitAll(t, 1)
	})
}

// Each lock gets its own lease.
func TestRenewalLeases(t *testing.T) {
	s := redistest.Shared(t)
	r, in := New(connect(t, s.URL()), time.Hour), newInbox()
	var keys []string
	for i := range 10 {
		keys = append(keys, held(t, s))
		n := renewal(keys[i], in, i)
		n.Lease = time.Duration(i+2)*time.Minute + 500*time.Microsecond
		r.Renew(n)
	}
	r.Close()
	in.awaitAll(t, 10)
	for i, key := range keys {
		want := time.Duration(i+2) * time.Minute
		if left := pttl(t, s, key); left > want || left < want-30*time.Second {
			t.Errorf("lease of %v: %v are left", want, left)
		}
	}
}

// An outcome that holds for the whole script is told to each receiver.
func TestRenewalsShareAnError(t *testing.T) {
	for name, trouble := range map[string]func(t *testing.T, s *redistest.Server){
		"gone":    func(t *testing.T, s *redistest.Server) { s.Kill(t) },
		"replica": func(t *testing.T, s *redistest.Server) { do(t, s, "REPLICAOF", "127.0.0.1", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			r, in := New(connect(t, s.URL()), time.Hour), newInbox()
			for i := range 50 {
				r.Renew(renewal(held(t, s), in, i))
			}
			trouble(t, s)
			r.Close()
			for _, reply := range in.awaitAll(t, 50) {
				if reply.Err == nil || !reply.Err.Transient {
					t.Fatalf("%+v", reply)
				}
			}
		})
	}
}

func TestRenewalsThatAreLate(t *testing.T) {
	s := redistest.Shared(t)
	r, in := New(connect(t, s.URL()), time.Hour), newInbox()
	for i := range 10 {
		n := renewal(held(t, s), in, i)
		n.Deadline = time.Now().Add(-time.Millisecond)
		r.Renew(n)
	}
	r.Close()
	for i, reply := range in.awaitAll(t, 10) {
		if reply.Err != errNotSent {
			t.Errorf("renewal %d: %+v", i, reply)
		}
	}
}

// The most patient of the renewals decides how long their script is waited for.
func TestRenewalsDeadline(t *testing.T) {
	now := time.Now()
	for _, order := range [][]time.Duration{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}} {
		var batch []Renewal
		for _, d := range order {
			batch = append(batch, Renewal{Script: scripts.Renew, Deadline: now.Add(d)})
		}
		if got := renewalCall(batch).Deadline.Sub(now); got != 3 {
			t.Errorf("%v: %v", order, got)
		}
	}
}

// Renewals do not wait behind other calls.
func TestRenewalsAreUrgent(t *testing.T) {
	s := redistest.Shared(t)
	client := &spy{Client: connect(t, s.URL())}
	r, in, stuck := open(t, client), newInbox(), redistest.Name(t)
	letGo := client.hold(stuck)
	defer letGo()
	for i := range 2 * workers * maxBatch {
		r.Run(counted(newInbox(), stuck, i, soon()))
	}
	r.Renew(renewal(held(t, s), in, 0))
	if reply := in.await(t, 0); reply.N[0] != 1 {
		t.Errorf("%+v", reply)
	}
}

// A reply that does not fit the request is nobody's.
func TestRenewalsShortReply(t *testing.T) {
	r, in := open(t, connect(t, redistest.Shared(t).URL())), newInbox()
	batch := renewalBatchCall{renewal("a", in, 0), renewal("b", in, 1)}
	r.Run(Call{Script: lua("return {1}", number), Deadline: soon(), To: batch})
	for i, reply := range in.awaitAll(t, 2) {
		if reply.Err == nil || reply.Err.Unwrap() != errShortReply {
			t.Errorf("renewal %d: %+v", i, reply)
		}
	}
}

// A renewal that is not known to the server is repaired like any other script.
func TestRenewalsForgotten(t *testing.T) {
	s := redistest.Start(t)
	r, in := New(connect(t, s.URL()), 0), newInbox()
	for i := range 20 {
		s.ScriptFlush(t)
		r.Renew(renewal(held(t, s), in, i))
	}
	r.Close()
	for i, reply := range in.awaitAll(t, 20) {
		if reply != (Reply{N: [3]int64{1}}) {
			t.Errorf("renewal %d: %+v", i, reply)
		}
	}
}

// In a cluster the keys of a script must lie in one slot.
func TestRenewalsInACluster(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, 1)[0]
	client := connect(t, s.URL())
	r, in := New(client, time.Hour), newInbox()
	if !r.Cluster() {
		t.Error("the cluster is not seen")
	}
	keys := []string{"n", "a{b}c", "a{b", "a}b", "{}x", "a{}{b}", "}{", "{{a}}"} // 8 slots
	for tag := range 30 {
		for i := range 10 {
			keys = append(keys, fmt.Sprintf("{%d}%d", tag, i))
		}
	}
	for i, key := range keys {
		do(t, s, "HSET", key, "a", "1")
		r.Renew(renewal(key, in, i))
	}
	r.Close()
	for i, reply := range in.awaitAll(t, len(keys)) {
		if reply != (Reply{N: [3]int64{1}}) {
			t.Errorf("%s: %+v", keys[i], reply)
		}
	}
	if n := s.Calls(t)["evalsha"]; n < 38 || n > 50 {
		t.Errorf("%d scripts for keys in 38 slots", n)
	}
	if open(t, connect(t, redistest.Shared(t).URL())).Cluster() {
		t.Error("a single server is taken for a cluster")
	}
}
