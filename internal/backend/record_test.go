package backend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// kept returns a Server whose System keeps a record.
func kept(t *testing.T, server *redistest.Server, ttl, every time.Duration) (s *Server, key string, refusals *atomic.Int64) {
	t.Helper()
	refusals = new(atomic.Int64)
	s = NewServer(clock(0), connect(t, server.URL()), Config{})
	client := uuid.NewString()
	s.keep(protocol.Record{Client: client, Application: "app", Since: time.Now()}, ttl, every, func(*protocol.Record) {}, func(error) { refusals.Add(1) })
	t.Cleanup(func() { s.Unregister(true, nil) })
	return s, keyspace.System("", keyspace.SystemOf(client)), refusals
}

func left(t *testing.T, server *redistest.Server, key string) time.Duration {
	t.Helper()
	ms, err := server.Do(t, "PTTL", key).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// A record is renewed, with the TTL that it had, also after Redis has lost it.
func TestRecord_IsRenewed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, key, _ := kept(t, server, time.Minute, 20*time.Millisecond)
	for range 3 {
		redistest.Eventually(t, "the record", func() bool { return left(t, server, key) > 59*time.Second })
		server.Do(t, "FLUSHALL")
	}
	s.Unregister(true, nil)
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

// A process that is killed right after a renewal of its leases and its record is overdue before a lease ends.
func TestRecord_OfADeadProcessIsOverdueInTime(t *testing.T) {
	t.Parallel()
	for _, watchdog := range []time.Duration{20 * time.Second, 30 * time.Second, 10 * time.Minute, time.Hour} {
		ttl, every := recordTimes(watchdog)
		at := func(d time.Duration) protocol.Record { return protocol.Record{Every: every.Milliseconds(), Seen: d} }
		if ttl < watchdog+every || !at(watchdog*2/3).Overdue() || at(every+time.Second).Overdue() {
			t.Errorf("with a watchdog of %v a record is renewed every %v, and lives for %v", watchdog, every, ttl)
		}
	}
}

// pipelines is a client that records whether it has sent two calls in one pipeline.
type pipelines struct {
	rueidis.Client
	two atomic.Bool
}

func (p *pipelines) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	p.two.Store(p.two.Load() || len(commands) == 2)
	return p.Client.DoMulti(ctx, commands...)
}

// A record is written in the same pipeline as a call for a lock: two overlapping calls would make every later one
// more expensive.
func TestRecord_IsWrittenWithAnotherCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	connected, err := redisio.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connected.Close)
	client := &pipelines{Client: connected}
	redis := redisclient.New(client, time.Hour)
	t.Cleanup(redis.Close)
	s := NewServer(clock(0), redis, Config{})
	s.keep(protocol.Record{Client: uuid.NewString()}, time.Minute, 20*time.Millisecond, func(*protocol.Record) {}, nil)
	t.Cleanup(func() { s.Unregister(true, nil) })
	redistest.Eventually(t, "two calls in one pipeline", func() bool {
		call := protocol.SystemInspect("", uuid.NewString(), time.Now().Add(redistest.Limit))
		call.To = receive(func(uint64, redisclient.Reply) {})
		redis.RunHere(t.Context(), &call)
		return client.two.Load()
	})
}

// The record outlives the longest lease; a lease that it outlives already causes no call.
func TestRecord_OutlivesLeases(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, key, _ := kept(t, server, time.Minute, time.Minute)
	redistest.Eventually(t, "the record", func() bool { return s.record.coveredUntil.Load() > 0 })
	server.ResetStats(t)
	s.Outlive(50 * time.Second)
	s.Outlive(machine.Instant(time.Hour))
	redistest.Eventually(t, "a longer record", func() bool { return left(t, server, key) > time.Hour })
	for range 100 {
		s.Outlive(machine.Instant(time.Hour))
	}
	if n := server.Calls(t)["set"]; n != 1 {
		t.Errorf("the record was written %d times", n)
	}
	s.Unregister(false, nil)
	if left(t, server, key) < time.Hour {
		t.Error("the record is gone, though a lock is left in Redis")
	}
}

// A change is written at once, and many changes with few writes; the last change is among them.
func TestRecord_ChangesAreWrittenTogether(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := NewServer(clock(0), connect(t, server.URL()), Config{})
	var latest atomic.Int64
	client := uuid.NewString()
	s.keep(protocol.Record{Client: client, Since: time.Now()}, time.Hour, time.Hour, func(r *protocol.Record) {
		r.Notes = []string{protocol.Note("1", fmt.Sprint(latest.Load()))}
	}, nil)
	t.Cleanup(func() { s.Unregister(true, nil) })
	const changes = 1000
	began := time.Now()
	for range changes {
		latest.Add(1)
		s.RecordChanged()
		server.Do(t, "PING")
	}
	redistest.Eventually(t, "the last change", func() bool {
		text, _ := server.Do(t, "GET", keyspace.System("", keyspace.SystemOf(client))).ToString()
		return strings.Contains(text, fmt.Sprintf(`"1 %d"`, changes))
	})
	if n, most := server.Calls(t)["set"], int64(3+time.Since(began)/changePause); n > most {
		t.Errorf("%d changes have caused %d writes, want at most %d", changes, n, most)
	}
}

// A refusal is reported once until the record is written again, and leases cause no calls afterwards.
func TestRecord_RefusalIsReportedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "default", "-set")
	s, _, refusals := kept(t, server, time.Minute, 10*time.Millisecond)
	refused := func(times int64) {
		t.Helper()
		calls := server.Calls(t)["evalsha"]
		redistest.Eventually(t, "a few tries", func() bool { return server.Calls(t)["evalsha"] > calls+3 })
		if n := refusals.Load(); n != times {
			t.Errorf("refused %d times, want %d", n, times)
		}
	}
	refused(1)
	s.Outlive(machine.Instant(time.Hour))
	server.Do(t, "ACL", "SETUSER", "default", "+set")
	redistest.Eventually(t, "the record", func() bool { return s.record.coveredUntil.Load() < int64(2*time.Hour) })
	server.Do(t, "ACL", "SETUSER", "default", "-set")
	refused(2)
}

// A refused record is no outage of Redis, which would end with each other call and begin with the next try: only its
// refusal is reported.
func TestRecord_RefusalIsNoOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "default", "-set")
	redis := connect(t, server.URL())
	var refused, outages atomic.Int64
	redis.Watch(redisclient.Watch{Reached: func(_ string, err *redisio.Error) {
		if err != nil {
			outages.Add(1)
		}
	}})
	s := NewServer(clock(0), redis, Config{})
	s.keep(protocol.Record{Client: uuid.NewString(), Application: "app", Since: time.Now()}, time.Minute, 10*time.Millisecond,
		func(*protocol.Record) {}, func(error) { refused.Add(1) })
	t.Cleanup(func() { s.Unregister(true, nil) })
	redistest.Eventually(t, "a few tries", func() bool { return server.Calls(t)["evalsha"] > 3 })
	if refused.Load() != 1 || outages.Load() != 0 {
		t.Errorf("refused %d times, and %d outages", refused.Load(), outages.Load())
	}
}

// All records are listed, however many there are, and other values are not.
func TestRecords_ListsAll(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	const n = 2*recordPage + 3
	for i := range n {
		client := fmt.Sprintf("%08d-0000-0000-%s", i, strings.Repeat("x", 17))
		answered := make(chan redisclient.Reply, 1)
		call := protocol.Record{Client: client, PID: i, Since: time.Now(), Every: 1}.SystemRenew("", time.Minute, time.Now().Add(redistest.Limit))
		call.To = receive(func(_ uint64, reply redisclient.Reply) { answered <- reply })
		s.redis.Run(call)
		if reply := <-answered; reply.Err != nil {
			t.Fatal(reply.Err)
		}
	}
	server.Do(t, "SET", keyspace.System("", fmt.Sprintf("%08d-0000-0000", 7)), "nonsense", "EX", "60")
	server.Do(t, "DEL", keyspace.System("", fmt.Sprintf("%08d-0000-0000", 8)))
	found := make(chan []int, 1)
	s.Records(nil, func(all []protocol.Record, err error) {
		var pids []int
		for _, r := range all {
			pids = append(pids, r.PID)
		}
		slices.Sort(pids)
		found <- pids
	})
	if pids := slices.Compact(<-found); len(pids) != n-2 || slices.Contains(pids, 7) || slices.Contains(pids, 8) {
		t.Errorf("%d records: %v", len(pids), pids)
	}
}
