package console_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Records of any size, and a list with names of any size, do not delay the acquires and renewals of locks while they are
// viewed, and do not hide any System.
func TestForgedRecords_DoNotDelayLocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--slowlog-log-slower-than", "60000") // in µs: reading a page of unbounded names takes twice as long
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Application: "shop", Watchdog: 20 * time.Second, Renewal: 600 * time.Millisecond})
	redistest.Eventually(t, "the record", func() bool { return len(server.Keys(t, "*{lockkeeper_systems}:*")) == 1 })
	for i := range 40 {
		system := fmt.Sprintf("%08d-0000-4000", i)
		do(t, server, "EVAL", `redis.call('ZADD', KEYS[1], 9e15, ARGV[1]) redis.call('SET', KEYS[1] .. ':' .. ARGV[1], string.rep('x', 5000000), 'PX', 600000)`,
			"1", keyspace.Systems(""), system)
	}
	do(t, server, "EVAL", `for i = 1, 100 do redis.call('ZADD', KEYS[1], 1e15 + i, string.rep('y', 300000) .. i) end`, "1", keyspace.Systems(""))

	base := web(t, console.Handler(s.System, console.WithInterval(100*time.Millisecond)))
	viewer := stream(t, base+"events")
	risk := lockkeeper.WithAtRisk(func(left time.Duration) { t.Errorf("a hold is at risk, with %v left", left) })
	var holds []*lockkeeper.Hold
	for i := range 50 {
		holds = append(holds, locktest.Acquire(t, s.Lock(fmt.Sprint("lock ", i)), risk))
	}
	for range 5 {
		viewer.awaits(t, "shop")
		if all, err := s.Systems(locktest.Within(t)); err != nil || len(all) != 1 || all[0].Application != "shop" {
			t.Errorf("%+v, %v", all, err)
		}
		locktest.Release(t, locktest.Acquire(t, s.Lock("another"), risk))
	}
	locktest.ExpectValid(t, holds...)

	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for what, looks := range map[string]func() (applications string){
		"the console": func() string { return get(t, base) },
		"Systems": func() string {
			all, err := s.Systems(locktest.Within(t))
			return fmt.Sprint(all, err)
		},
		"ls -systems": func() string {
			all, err := inspect.Inspector{Client: client}.Systems(locktest.Within(t))
			return fmt.Sprint(all, err)
		},
		"inspect": func() string { return get(t, base+"data.json?name=lock+7") },
	} {
		var never map[string]bool // the commands that were slow each time; the server itself may have to wait for a processor
		redistest.Eventually(t, what+" to block Redis with no command", func() bool {
			do(t, server, "SLOWLOG", "RESET")
			if found := looks(); !strings.Contains(found, "shop") {
				t.Errorf("%s does not show the System: %s", what, found)
			}
			slow := slowCommands(t, server)
			if never == nil {
				never = slow
			}
			maps.DeleteFunc(never, func(command string, _ bool) bool { return !slow[command] })
			return len(never) == 0
		})
	}
}

// slowCommands returns the commands of the slow log, as text.
func slowCommands(t *testing.T, server *redistest.Server) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, entry := range locktest.Must(server.Do(t, "SLOWLOG", "GET", "-1").ToArray())(t) {
		fields := locktest.Must(entry.ToArray())(t)
		all[fmt.Sprint(locktest.Must(fields[3].AsStrSlice())(t))] = true
	}
	return all
}

// The number of Systems whose records are read is bounded, and the console reports if there are more.
func TestSystems_ThatAreReadAreBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), patient("shop"))
	redistest.Eventually(t, "the record", func() bool { return len(server.Keys(t, "*{lockkeeper_systems}:*")) == 1 })
	base := web(t, console.Handler(s.System, quick))
	if d := read(t, base+"data.json"); d.SystemsCut {
		t.Error("a list of one System is reported as cut")
	}
	do(t, server, "EVAL", `for i = 1, 10100 do redis.call('ZADD', KEYS[1], 9e15 + i, string.format('%08d-0000-4000', i)) end`, "1", keyspace.Systems(""))
	all, err := s.Systems(locktest.Within(t))
	if len(all) != 1 || !errors.Is(err, lockkeeper.ErrMoreSystems) {
		t.Errorf("%d Systems, %v", len(all), err)
	}
	var d data
	redistest.Eventually(t, "a refresh with all Systems", func() bool {
		server.ResetStats(t)
		d = read(t, base+"data.json")
		return d.SystemsCut
	})
	if len(d.Systems) != 1 || len(d.Errors) > 0 {
		t.Errorf("other records were read as systems, or as errors: %+v", d)
	}
	if n := server.Calls(t)["zrange"]; n > 11_000 {
		t.Errorf("%d names were read", n)
	}
	if page := get(t, base); !strings.Contains(page, "1 or more") {
		t.Errorf("the page does not report that the list is cut: %s", page)
	}
}

// do runs a command.
func do(t *testing.T, server *redistest.Server, words ...string) {
	t.Helper()
	if err := server.Do(t, words...).Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(words[0], err)
	}
}
