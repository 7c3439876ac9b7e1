//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// inspect shows semaphores and latches with their kind, and release and watch refuse them.
func TestInspect_ShowsSynchronizers(t *testing.T) {
	t.Parallel()
	server, prefix := redistest.Shared(t), redistest.Name(t)+":"
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	s := must(lockkeeper.Open(ctx, server.URL(), lockkeeper.WithConfig(lockkeeper.Config{KeyPrefix: prefix, Application: "holder"})))
	t.Cleanup(func() { check(s.Close(context.WithoutCancel(ctx))) })
	must(s.ExpirableSemaphore("permits").TrySetPermits(ctx, 4))
	long := must(s.ExpirableSemaphore("permits").Acquire(ctx, lockkeeper.WithLease(time.Hour)))
	must(s.ExpirableSemaphore("permits").Acquire(ctx, lockkeeper.WithLease(2*time.Hour)))
	java := "abcdefghijklmnop" // ids of Redisson: an expired permit, and a permit that never expires
	server.Do(t, "ZADD", "{"+prefix+"permits}:timeout", "1000", java, "922337203685477", strings.ToUpper(java))
	server.Do(t, "INCRBY", prefix+"permits", "-2")
	must(s.Latch("latch").TrySetCount(ctx, 3))
	wait, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Latch("latch").Wait(wait)
	}()
	t.Cleanup(func() { stop(); <-done })
	redistest.Eventually(t, "it waits", func() bool {
		return server.Subscribers(t, "redisson_countdownlatch__channel__{"+prefix+"latch}") == 1
	})
	must(s.Semaphore("semaphore").TrySetPermits(ctx, 7, 0))

	for name, want := range map[string]inspect.Counter{
		"permits":   {Kind: inspect.KindExpirableSemaphore, Count: inspect.Known(1), Waiters: inspect.Known(0), Taken: 3},
		"latch":     {Kind: inspect.KindLatch, Count: inspect.Known(3), Waiters: inspect.Known(1)},
		"semaphore": {Kind: inspect.KindCounter, Count: inspect.Known(7), Waiters: inspect.Known(0)},
	} {
		got := read[inspect.Counter](t, server, 0, "inspect", "--json", "-prefix", prefix, name)[0]
		if got.Kind != want.Kind || got.Name != name || got.Count != want.Count ||
			got.Taken != want.Taken || got.Waiters != want.Waiters || got.TTL != -1 {
			t.Errorf("inspect prints %+v, want %+v", got, want)
		}
		text, _ := runCommand(t, server, 0, "inspect", "-prefix", prefix, name)
		if !strings.Contains(text, want.Kind) || !regexp.MustCompile(fmt.Sprintf(`(?m)^(free|count) +%v$`, want.Count)).MatchString(text) {
			t.Errorf("inspect prints %s", text)
		}
		for _, args := range [][]string{{"release", "--force"}, {"watch"}} {
			_, why := runCommand(t, server, exitUnavailable, append(args, "-prefix", prefix, name)...)
			if !strings.Contains(why, "not a lock") {
				t.Errorf("%s prints %s", args[0], why)
			}
		}
	}
	got := read[inspect.Counter](t, server, 0, "inspect", "--json", "-prefix", prefix, "permits")[0].Permits
	if len(got) != 3 || got[0].ID != long.ID() || got[0].Process == nil || got[0].Process.Client != s.ID() ||
		got[2].Process != nil || got[0].Left > 3_600_000 || got[0].Left < 3_500_000 ||
		got[1].Left < 7_100_000 || got[2].Left != -1 {
		t.Errorf("the taken permits are %+v", got)
	}
	many := []string{"ZADD", "{" + prefix + "permits}:timeout"}
	for i := range inspect.MaxPermits {
		many = append(many, "922337203685477", fmt.Sprintf("%016d", i))
	}
	server.Do(t, many...)
	text, _ := runCommand(t, server, 0, "inspect", "-prefix", prefix, "permits")
	if n := strings.Count(text, "lease left"); n != inspect.MaxPermits ||
		!strings.Contains(text, "and 3 more\n") || strings.Count(text, "held by holder on ") != 2 {
		t.Errorf("inspect prints %d permits: %.500s … %s", n, text, text[len(text)-100:])
	}
}

// asReader returns the URL for a user with the rules for a reader in docs/acl.md.
func asReader(t *testing.T, server *redistest.Server, prefix string) string {
	t.Helper()
	rules := regexp.MustCompile("(?m)^ACL SETUSER reader on >PASSWORD .*").FindString(string(must(os.ReadFile("../../docs/acl.md"))))
	check(server.Do(t, strings.Fields(strings.ReplaceAll(rules, "locks:", prefix))...).Error())
	return strings.Replace(server.URL(), "://", "://reader:PASSWORD@", 1)
}

// ls lists semaphores and latches with their data in Redis, if they can be distinguished from other numbers.
func TestList_ShowsSynchronizers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	s := must(lockkeeper.Open(ctx, server.URL(), lockkeeper.WithConfig(lockkeeper.Config{KeyPrefix: "app:"})))
	t.Cleanup(func() { check(s.Close(context.WithoutCancel(ctx))) })
	must(s.Semaphore("used/now").TrySetPermits(ctx, 7, time.Hour))
	check(s.Semaphore("used/now").Acquire(ctx, 2))
	must(s.Semaphore("two").TrySetPermits(ctx, 2, 0))
	must(s.ExpirableSemaphore("{permits} now").TrySetPermits(ctx, 4))
	for range 3 {
		must(s.ExpirableSemaphore("{permits} now").Acquire(ctx))
	}
	must(s.Latch("{latch}").TrySetCount(ctx, 3))
	must(s.Lock("a lock, now").Acquire(ctx))
	for _, command := range []string{"SET app:java 5", "SET app:waited 4", "ZADD {app:java}:timeout 922337203685477 abcdefghijklmnop", "SET app:visits 12",
		"SET app:text x", "ZADD {app:text}:timeout 1 x", "ZADD app:times:timeout 1 x", "ZADD app:visits:timeout 1 x",
		"SET {app:two}:timeout x", "SET other:java 5", "ZADD {other:java}:timeout 1 x"} {
		server.Do(t, strings.Fields(command)...)
	}
	client := must(lockkeeper.Connect(server.URL()))
	t.Cleanup(client.Close)
	listens, leave := client.Dedicate()
	t.Cleanup(leave)
	check(listens.Do(ctx, listens.B().Subscribe().Channel("redisson_countdownlatch__channel__{app:waited}").Build()).Error())

	want := []inspect.Counter{
		{Name: "java", Kind: inspect.KindExpirableSemaphore, Taken: 1}, {Name: "used/now", Kind: inspect.KindCounter},
		{Name: "waited", Kind: inspect.KindLatch, Waiters: inspect.Known(1)},
		{Name: "{latch}", Kind: inspect.KindCounter}, {Name: "{permits} now", Kind: inspect.KindExpirableSemaphore, Taken: 3},
	}
	for i, w := range want {
		want[i].Count = inspect.Known(must(server.Do(t, "GET", "app:"+w.Name).AsInt64()))
		want[i].Waiters = inspect.Known(w.Waiters.N)
		want[i].TTL = must(server.Do(t, "PTTL", "app:"+w.Name).AsInt64())
		if n := must(server.Do(t, "ZCARD", keyspace.Taken("app:"+w.Name)).AsInt64()); n != w.Taken {
			t.Fatalf("%d permits of %s are taken", n, w.Name)
		}
	}
	reader := asReader(t, server, "app:")
	list := func(pattern ...string) (all []inspect.Counter) {
		for _, c := range read[inspect.Counter](t, server, 0, append([]string{"ls", "--json", "-redis", reader, "-prefix", "app:"}, pattern...)...) {
			if c.Kind != inspect.KindPlain {
				if c.TTL > 3_500_000 {
					c.TTL = want[1].TTL // time has passed
				}
				all = append(all, c)
			}
		}
		return all
	}
	if got := list(); !reflect.DeepEqual(got, want) {
		t.Errorf("ls lists\n%+v\nand in Redis is\n%+v", got, want)
	}
	if got := list("*?now"); !reflect.DeepEqual(got, []inspect.Counter{want[1], want[4]}) {
		t.Errorf("ls lists %+v of them", got)
	}
	text, warning := runCommand(t, server, 0, "ls", "-redis", reader, "-prefix", "app:")
	if !strings.Contains(warning, "read: 1;") || !strings.Contains(warning, `"app:two": WRONGTYPE`) {
		t.Errorf("ls warns %q", warning)
	}
	if !regexp.MustCompile(`(?m)^a lock, now .*\n\nNAME +KIND +COUNT +TAKEN +TTL +WAITERS\n(.*\n){4}\{permits\} now +expirable_semaphore +1 +3 +never +\d+\n$`).MatchString(text) {
		t.Errorf("ls prints %s", text)
	}
	if _, why := runCommand(t, server, exitUnavailable, "inspect", "-prefix", "app:", "two"); !strings.Contains(why, "WRONGTYPE") {
		t.Errorf("inspect prints %s", why)
	}

	// For a user without all rights, ls lists what the user may read, and names a right that is missing.
	const before = "+scan +hlen +hrandfield +hstrlen +hmget +pttl +getrange +llen +lrange +pubsub|numsub +zrange"
	for _, c := range []struct {
		rules, names, warning string
	}{
		{before + " ~*", "a lock, now", "+exists +time +zcount +pubsub|channels"},
		{before + " +time +exists +pubsub|channels ~*", "a lock, now", "'zcount'"},
		{before + " +time +exists +zcount ~*", "a lock, now java used/now {latch} {permits} now", "'pubsub"},
		{before + " +time +exists +zcount +pubsub|channels ~app:* ~{app:java}* ~lockkeeper_counted:*", "a lock, now java {latch} {permits} now", "refuses to read"},
	} {
		server.Do(t, append([]string{"ACL", "SETUSER", "inspector", "reset", "on", ">secret"}, strings.Fields(c.rules)...)...)
		out, warning := runCommand(t, server, 0, "ls", "--json", "-prefix", "app:", "-redis", strings.Replace(server.URL(), "://", "://inspector:secret@", 1))
		var names []string
		for _, m := range regexp.MustCompile(`"name":"([^"]*)"`).FindAllStringSubmatch(out, -1) {
			names = append(names, m[1])
		}
		if got := strings.Join(names, " "); got != c.names || (warning == "") != (c.warning == "") || !strings.Contains(warning, c.warning) {
			t.Errorf("with %s ls lists %s and warns %q", c.rules, got, warning)
		}
	}
}

// A number that the scripts refuse is shown unchanged, with the problem, and a number that is not set is reported if
// its name can be found.
func TestBadNumbers_AreShown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	s := must(lockkeeper.Open(ctx, server.URL(), lockkeeper.WithConfig(lockkeeper.Config{})))
	t.Cleanup(func() { check(s.Close(context.WithoutCancel(ctx))) })
	const owner = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57"
	for _, command := range []string{
		"SET padded 007", "ZADD {padded}:timeout 922337203685477 abcdefghijklmnop", "SET huge 2147483648", "ZADD {huge}:timeout 922337203685477 abcdefghijklmnop",
		"HSET token " + owner + " 1", "SET redisson_lock_token:{token} 007", "HSET held " + owner + " 007",
		"ZADD {gone}:timeout 922337203685477 abcdefghijklmnop",
	} {
		check(server.Do(t, strings.Fields(command)...).Error())
	}
	for name, acquire := range map[string]func() error{
		"unset":     func() error { return s.Semaphore("unset").TryAcquire(ctx, 1) },
		"unset {p}": func() error { _, err := s.ExpirableSemaphore("unset {p}").TryAcquire(ctx); return err },
	} {
		if err := acquire(); !errors.Is(err, lockkeeper.ErrNoPermits) {
			t.Fatal(name, err)
		}
	}
	problems := map[string]string{
		"padded": `the count is "007"`, "huge": `the count is "2147483648"`, "token": `the tokens is "007"`, "held": ` is "007"`,
		"gone": inspect.Unset, "unset": inspect.Unset, "unset {p}": inspect.Unset,
	}
	type shown struct {
		Name, Kind, Problem string
		Problems            []string
		Count               *int64
		Token               int64
		Owners              []inspect.Owner
	}
	listed := read[shown](t, server, 0, "ls", "--json", "-redis", asReader(t, server, ""))
	table, _ := runCommand(t, server, 0, "ls")
	for _, v := range listed {
		want := problems[v.Name]
		delete(problems, v.Name)
		if want == "" || !strings.Contains(v.Problem+strings.Join(v.Problems, ""), want) ||
			v.Count != nil || v.Token != 0 || v.Name == "held" && v.Owners[0].Count.Known {
			t.Errorf("ls prints %+v, want %q", v, want)
		}
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(v.Name) + ` .*` + regexp.QuoteMeta(want)).MatchString(table) {
			t.Errorf("ls does not print %q with its problem: %s", v.Name, table)
		}
		if strings.HasPrefix(v.Name, "unset") {
			continue // there is no key of that name in Redis
		}
		if text, _ := runCommand(t, server, 0, "inspect", v.Name); !regexp.MustCompile(`(?m)^problem .*` + regexp.QuoteMeta(want)).MatchString(text) {
			t.Errorf("inspect prints for %q: %s", v.Name, text)
		}
	}
	if len(problems) > 0 {
		t.Errorf("ls does not list %v", problems)
	}
	for _, f := range read[finding](t, server, 0, "doctor", "--json") {
		if f.Check == "numbers" &&
			(f.Status != isWarning || !strings.Contains(f.Found, inspect.Unset) || !strings.Contains(f.Found, "and 2 more")) {
			t.Errorf("doctor found %+v", f)
		}
	}
}
