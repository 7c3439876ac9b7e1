package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The values of a hash that is not a lock are not read.
func TestForeignValues_AreNotRead(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	do := func(words ...string) string {
		t.Helper()
		text, err := client.Do(t.Context(), client.B().Arbitrary(words...).Build()).ToAny()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(text)
	}
	const large = 200_000
	for i := range 40 {
		do("HSET", "session", "field"+strconv.Itoa(i), strings.Repeat("x", large))
	}
	owner := func(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
	do("HSET", "held", owner(1)+":1", "1")
	do("HSET", "upper case", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6:1", "1") // neither Lockkeeper nor Redisson writes this
	record := func(i int, says string) {
		do("ZADD", keyspace.Systems(""), "1", keyspace.SystemOf(owner(i)))
		do("SET", keyspace.System("", keyspace.SystemOf(owner(i))), says, "PX", "600000")
	}
	record(1, `{"client":"c","application":"good","since":"2026-01-02T03:04:05Z"}`)
	before := sent(t, do("INFO", "stats"))
	in := inspect.Inspector{Client: client}
	all, err := in.List(t.Context(), "*", 100)
	if err != nil || len(all) != 1 || all[0].Name != "held" || all[0].Owners[0].Process.Application != "good" {
		t.Errorf("%+v, %v", all, err)
	}
	if cost := sent(t, do("INFO", "stats")) - before; cost > large/2 {
		t.Errorf("a list of one lock is %d bytes", cost)
	}
}

// sent returns how many bytes Redis has sent.
func sent(t *testing.T, info string) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(info, "total_net_output_bytes:")
	n, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A number that the user may not read, or that Redis does not have, is unknown, and not zero.
func TestUnknown_IsNotZero(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const client = "00000000-0000-4000-8000-000000000001"
	server.Do(t, "HSET", "held", client+":1", "1")
	server.Do(t, "HSET", keyspace.WaitQueue("held"), client, "1000000 1")
	server.Do(t, "SET", "permits", "3")
	server.Do(t, "ZADD", keyspace.Taken("permits"), "922337203685477", "abcdefghijklmnop")
	for user, rules := range map[string]string{"all": "+@all", "some": "+@all -pubsub|numsub -time"} {
		server.Do(t, append([]string{"ACL", "SETUSER", user, "on", ">secret", "~*", "&*"}, strings.Fields(rules)...)...)
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, Username: user, Password: "secret", DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		in := inspect.Inspector{Client: client}
		all, err := in.List(t.Context(), "*", 100)
		if err != nil || len(all) != 1 || len(all[0].Queue) != 1 {
			t.Fatalf("%s: %+v, %v", user, all, err)
		}
		v, known := all[0], user == "all"
		if v.Waiters.Known != known || v.Queue[0].Waiting.Known != known || v.Owners[0].HeldAtLeast.Known || v.Owners[0].Waiters.Known {
			t.Errorf("%s: what its rights do not show is known, or not what they show: %+v", user, v)
		}
		text, err := json.Marshal(v)
		if want := `"waiters":null`; err != nil || strings.Count(string(text), want) != 1+strings.Count(rules, "numsub") {
			t.Errorf("%s: %s, %v", user, text, err)
		}
		var again inspect.Lock
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, v) {
			t.Errorf("%s: %+v is read as %+v, %v", user, v, again, err)
		}
	}
}

// A lock that passes from one owner to the next while it is read is never taken for the key of another application, also if it
// does so at each read.
func TestInspect_OfALockThatChangesIsNoError(t *testing.T) {
	t.Parallel()
	owner := func(i int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d:1", i) }
	for kind, change := range map[string]string{
		inspect.KindPlain:     `redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1)`,
		inspect.KindReadWrite: `redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[1] .. ':write', 1)`,
	} {
		t.Run(kind, func(t *testing.T) {
			s, k := locktest.New(t, lockkeeper.Config{})
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						k.Do(t, "EVAL", change, "1", k.Name, owner(i%10))
					}
				}
			}()
			in := inspect.Inspector{Client: s.Client}
			redistest.Eventually(t, "the lock to be held", func() bool { n, _ := k.Do(t, "EXISTS", k.Name).AsBool(); return n })
			for range 300 {
				views, err := in.Inspect(locktest.Within(t), []string{k.Name}, true)
				if err != nil || !views[0].Held || len(views[0].Owners) != 1 || views[0].Kind != kind {
					t.Errorf("%+v, %v", views, err)
					break
				}
			}
			close(stop)
			<-done
		})
	}
}

// changingClient calls a function before a pipeline that begins with the command.
type changingClient struct {
	rueidis.Client
	command string
	change  func()
}

func (c changingClient) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	if multi[0].Commands()[0] == c.command {
		c.change()
	}
	return c.Client.DoMulti(ctx, multi...)
}

// A lock that passes from one owner to the next while it is read is in the list, also if it does so at each read.
func TestList_HasALockThatChanges(t *testing.T) {
	t.Parallel()
	for what, changes := range map[string]int{"once": 1, "always": 100} {
		t.Run(what, func(t *testing.T) {
			s, k := locktest.New(t, lockkeeper.Config{})
			owner := func(i int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d:1", i) }
			k.TakeAs(t, owner(0), time.Minute)
			n := 0
			client := changingClient{s.Client, "HSTRLEN", func() {
				if n++; n <= changes {
					k.Atomically(t, `redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1)`, []string{k.Name}, owner(n))
				}
			}}
			all, err := inspect.Inspector{Client: client}.List(locktest.Within(t), k.Name, 10)
			if err != nil || len(all) != 1 || len(all[0].Owners) != 1 || (len(all[0].Problems) == 0) != (what == "once") {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}

// Of several named locks, one that changes while it is read is shown although the server of another does not answer.
func TestInspect_MissingServerHidesNoLockThatChanges(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 3)
	for _, s := range servers {
		s.Do(t, "CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
	names := make([]string, len(servers))
	owner := func(i int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d:1", i) }
	for i := 0; slices.Contains(names, ""); i++ {
		name := fmt.Sprintf("lock-%02d", i)
		if at := int(keyspace.Slot(name)) * len(servers) / 16384; names[at] == "" {
			names[at] = name
			servers[at].Do(t, "HSET", name, owner(0), "1")
		}
	}
	cluster, err := redisio.Connect(strings.Replace(servers[0].URL(), "redis://", "redis-cluster://", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	servers[2].Kill(t)
	n := 0
	client := changingClient{cluster, "HSTRLEN", func() {
		if n++; n == 1 {
			servers[0].Do(t, "EVAL", `redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1)`, "1", names[0], owner(1))
		}
	}}
	views, err := inspect.Inspector{Client: client}.Inspect(locktest.Within(t), names, true)
	var seen []string
	for _, v := range views {
		seen = append(seen, v.Name)
	}
	slices.Sort(seen)
	if err == nil || !strings.Contains(err.Error(), names[2]) || len(seen) != 2 || !slices.Contains(seen, names[0]) || !slices.Contains(seen, names[1]) {
		t.Errorf("%q, %v", seen, err)
	}
}
